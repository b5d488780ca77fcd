# Translates Kconfig options to settings of twin_config.h, for ESP-IDF and Zephyr.

set(twinedge_settings TWIN_BLOCK=${CONFIG_TWIN_BLOCK} TWIN_TARGETS=${CONFIG_TWIN_TARGETS})
foreach(
  part
  FLOAT
  NEIGHBORS
  INTERVALS
  STORE
  SILU
  INT16
  MAP
  TARGET_CURVE
  TEXT
  PARTIAL
  OPEN_STEPS
  QUICK_OPEN)
  if(NOT CONFIG_TWIN_${part})
    list(APPEND twinedge_settings TWIN_${part}=0)
  endif()
endforeach()
