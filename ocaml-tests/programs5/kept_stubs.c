#include <caml/mlvalues.h>
#include "at_rest.h"

value kept_others_sleep(value unit)
{
    wait_until_others_sleep();
    return unit;
}
