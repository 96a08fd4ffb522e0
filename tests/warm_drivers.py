"""The drivers, warmed up: imported by the process from which others are forked (`forked_workers`)."""

import drivers

drivers.warm_up()
