/* For build systems that look for headers here and nowhere else, as Arduino's does. */

#include "../include/twin_window.h"
