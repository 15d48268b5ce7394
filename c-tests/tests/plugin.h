/* What code that is loaded while running tells the program: where its sites are, and what to run. */
#ifndef PLUGIN_H
#define PLUGIN_H

#include "../runtime/rt.h"

typedef struct plugin_interface {
  rt_sites (*sites)(void);
  rt_function run;
} plugin_interface;

#endif
