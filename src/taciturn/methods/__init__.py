"""The paper's other algorithms, each with its proof; they state what noise they need."""
