# SPDX-License-Identifier: Apache-2.0
# For the Makefile that STM32CubeMX writes, before its section "build the application":
#
#   TIDE_CUBE_FREERTOS = 1             only where the project has FreeRTOS
#   TIDE_CUBE_TRANSPORT =              only where the project has a transport of its own
#   include tide_micro_ros/tide.mk
#
# The sources have rules of their own, since that Makefile puts files of one name from two folders into one object.
TIDE_FOLDER := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
TIDE_GOAL := $(.DEFAULT_GOAL)
TIDE_CUBE_TRANSPORT ?= port/stm32cube/cubemx_transport.c
TIDE_PORTS := $(TIDE_CUBE_TRANSPORT)
TIDE_INCLUDES := include messages port/stm32cube
ifeq ($(TIDE_CUBE_FREERTOS),1)
TIDE_PORTS += port/freertos/freertos.c $(addprefix port/rtos/,platform.c lanes.c link.c)
TIDE_INCLUDES += port/freertos
TIDE_DEFINES := -DTIDE_CUBE_FREERTOS=1 -DTIDE_LINK_UART=0
else
TIDE_PORTS += port/stm32cube/board.c port/bare/platform.c port/bare/atomics.c
TIDE_INCLUDES += port/bare
endif
TIDE_SOURCES := $(patsubst $(TIDE_FOLDER)/%,%,$(shell find $(TIDE_FOLDER)/src $(TIDE_FOLDER)/messages -name '*.c'))
TIDE_OBJECTS := $(patsubst %.c,$(BUILD_DIR)/tide/%.o,$(TIDE_SOURCES) $(TIDE_PORTS))
TIDE_ARCHIVE := $(BUILD_DIR)/tide/libtide_micro_ros.a

C_INCLUDES += $(addprefix -I$(TIDE_FOLDER)/,$(TIDE_INCLUDES))
LDFLAGS += $(TIDE_ARCHIVE)

$(BUILD_DIR)/tide/%.o: $(TIDE_FOLDER)/%.c | $(BUILD_DIR)
	@mkdir -p $(@D)
	$(CC) -c $(CFLAGS) $(TIDE_DEFINES) $< -o $@
$(TIDE_ARCHIVE): $(TIDE_OBJECTS)
	$(file >$@.list,$^)
	$(CC:gcc=ar) rcs $@ @$@.list
$(BUILD_DIR)/$(TARGET).elf: $(TIDE_ARCHIVE)
.DEFAULT_GOAL := $(TIDE_GOAL)
