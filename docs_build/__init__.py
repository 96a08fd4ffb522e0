"""What the documentation is made of besides its pages: pictures and lists that code draws while the site is built."""
