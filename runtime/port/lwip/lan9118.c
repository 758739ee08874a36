/* SPDX-License-Identifier: Apache-2.0 */
/* Registers and bits are those of the data sheet (SMSC LAN9118, now Microchip). */
#include "lan9118.h"

#include <lwip/etharp.h>
#include <lwip/pbuf.h>
#include <string.h>

#include "tide_lwip.h"

typedef struct chip {
  volatile uint32_t rx_data, rx_alias[7], tx_data, tx_alias[7];
  volatile uint32_t rx_status, rx_status_peek, tx_status, tx_status_peek;
  volatile uint32_t id, irq_config, interrupts, enabled, reserved_60, byte_test, fifo_levels;
  volatile uint32_t rx_config, tx_config, hw_config, rx_control, rx_used, tx_free, power;
  volatile uint32_t gpio, timer_config, timer, reserved_94, word_swap, free_run, rx_dropped;
  volatile uint32_t mac_command, mac_data, flow_control, eeprom_command, eeprom_data;
} chip_t;

#define BYTE_TEST 0x87654321u
#define POWER_READY 1u
#define HW_RESET 1u
#define HW_TX_FIFO_5K (5u << 16 | 1u << 20) /* store and forward, which the data sheet demands */
#define IRQ_ENABLED_HIGH_PUSH_PULL 0x111u
#define INTERRUPT_RECEIVED (1u << 3) /* the level of the receive status FIFO is exceeded */
#define INTERRUPT_PHY (1u << 18)
#define LEVELS 0x48000000u /* transmit: default; receive status: more than 0 */
#define TX_ON_STATUS_OVERRUN (1u << 1 | 1u << 2)
#define RX_ERROR (1u << 15)
#define TX_FIRST (1u << 13)
#define TX_LAST (1u << 12)
#define TX_OVERHEAD_BYTES 12u /* for each piece: two commands, and padding */
#define EEPROM_BUSY (1u << 31)

#define MAC_BUSY (1u << 31)
#define MAC_READ (1u << 30)
#define MAC_CONTROL 1u
#define MAC_ADDRESS_HIGH 2u
#define MAC_ADDRESS_LOW 3u
#define MAC_MII 6u
#define MAC_MII_DATA 7u
#define CONTROL_RECEIVE (1u << 2)
#define CONTROL_TRANSMIT (1u << 3)
#define CONTROL_ALL_MULTICAST (1u << 19)
#define CONTROL_FULL_DUPLEX (1u << 20)

#define MII_BUSY 1u
#define MII_WRITE 2u
#define MII_REGISTER(number) (1u << 11 | (number) << 6) /* of the PHY in the chip */
#define PHY_CONTROL 0u
#define PHY_STATUS 1u
#define PHY_ADVERTISED 4u
#define PHY_PARTNER 5u
#define PHY_INTERRUPTS 29u
#define PHY_ENABLED 30u
#define PHY_NEGOTIATE 0x1200u
#define PHY_LINK (1u << 2)
#define PHY_FULL_DUPLEX (1u << 8 | 1u << 6) /* of 100 and of 10 Mbit/s */
#define PHY_DOWN (1u << 4)
#define PHY_NEGOTIATED (1u << 6)

#define TRIES 1000000u /* reads of a register, at least 50 ms; a reset takes less */

static struct netif *only;

static bool becomes(const volatile uint32_t *place, uint32_t mask, uint32_t value) {
  for (uint32_t tries = 0; tries < TRIES; tries++)
    if ((*place & mask) == value) return true;
  return false;
}

/* ---- the MAC's and the PHY's registers ---- */

static uint32_t mac_read(chip_t *chip, uint32_t number) {
  chip->mac_command = MAC_BUSY | MAC_READ | number;
  (void)becomes(&chip->mac_command, MAC_BUSY, 0);
  return chip->mac_data;
}

static void mac_write(chip_t *chip, uint32_t number, uint32_t value) {
  chip->mac_data = value;
  chip->mac_command = MAC_BUSY | number;
  (void)becomes(&chip->mac_command, MAC_BUSY, 0);
}

static void await_phy(chip_t *chip) {
  for (uint32_t tries = 0; tries < TRIES && (mac_read(chip, MAC_MII) & MII_BUSY) != 0; tries++) {}
}

static uint32_t phy_read(chip_t *chip, uint32_t number) {
  mac_write(chip, MAC_MII, MII_REGISTER(number) | MII_BUSY);
  await_phy(chip);
  return mac_read(chip, MAC_MII_DATA);
}

static void phy_write(chip_t *chip, uint32_t number, uint32_t value) {
  mac_write(chip, MAC_MII_DATA, value);
  mac_write(chip, MAC_MII, MII_REGISTER(number) | MII_WRITE | MII_BUSY);
  await_phy(chip);
}

/* Reading the PHY's interrupts clears them. A change during this function causes another interrupt. */
static void check_link(struct netif *interface, chip_t *chip) {
  (void)phy_read(chip, PHY_INTERRUPTS);
  if ((phy_read(chip, PHY_STATUS) & PHY_LINK) == 0) {
    netif_set_link_down(interface);
    return;
  }
  const uint32_t common = phy_read(chip, PHY_ADVERTISED) & phy_read(chip, PHY_PARTNER);
  const uint32_t control = mac_read(chip, MAC_CONTROL) & ~CONTROL_FULL_DUPLEX;
  mac_write(chip, MAC_CONTROL, (common & PHY_FULL_DUPLEX) != 0 ? control | CONTROL_FULL_DUPLEX : control);
  netif_set_link_up(interface);
}

/* ---- frames ---- */

/* Each buffer of the chain is a piece of whole words, whose surplus bytes the controller drops. Status words are not
 * read: the controller may overrun that FIFO. */
static err_t send(struct netif *interface, struct pbuf *frame) {
  chip_t *const chip = interface->state;
  if ((chip->tx_free & 0xFFFFu) < frame->tot_len + pbuf_clen(frame) * TX_OVERHEAD_BYTES) return ERR_MEM;
  uint32_t sent = 0;
  for (const struct pbuf *piece = frame; piece != NULL; piece = piece->next) {
    if (piece->len == 0) continue;
    const uint8_t *const bytes = piece->payload;
    const bool is_last = sent + piece->len == frame->tot_len;
    chip->tx_data = (sent == 0 ? TX_FIRST : 0u) | (is_last ? TX_LAST : 0u) | piece->len;
    chip->tx_data = (uint32_t)frame->tot_len << 16 | frame->tot_len;
    for (uint32_t at = 0; at < piece->len; at += 4) {
      uint32_t word = 0;
      memcpy(&word, bytes + at, piece->len - at < 4 ? piece->len - at : 4);
      chip->tx_data = word;
    }
    sent += piece->len;
  }
  return ERR_OK;
}

/* The frame without its check sum; null: lwIP has no memory, or the frame is damaged. All its words are read. */
static struct pbuf *receive(chip_t *chip) {
  const uint32_t status = chip->rx_status, bytes = status >> 16 & 0x3FFFu;
  uint32_t words = (bytes + 3) / 4;
  struct pbuf *frame = NULL;
  if ((status & RX_ERROR) == 0 && bytes > 4) frame = pbuf_alloc(PBUF_RAW, (u16_t)(bytes - 4), PBUF_POOL);
  for (struct pbuf *piece = frame; piece != NULL; piece = piece->next) {
    for (uint32_t at = 0; at < piece->len; at += 4, words--) { /* all pieces but the last consist of whole words */
      const uint32_t word = chip->rx_data;
      memcpy((uint8_t *)piece->payload + at, &word, piece->len - at < 4 ? piece->len - at : 4);
    }
  }
  for (; words > 0; words--) (void)chip->rx_data;
  return frame;
}

void tide_lan9118_interrupt(void) {
  chip_t *const chip = only->state;
  chip->enabled = 0;
  tide_lwip_wake();
}

/* The interrupt is cleared before the FIFO is empty, so a frame that arrives meanwhile causes another one. */
void tide_lan9118_input(struct netif *interface) {
  chip_t *const chip = interface->state;
  const uint32_t interrupts = chip->interrupts;
  chip->interrupts = INTERRUPT_RECEIVED;
  if ((interrupts & INTERRUPT_PHY) != 0) check_link(interface, chip);
  while ((chip->rx_used >> 16 & 0xFFu) > 0) {
    struct pbuf *const frame = receive(chip);
    if (frame != NULL && interface->input(frame, interface) != ERR_OK) (void)pbuf_free(frame);
  }
  chip->enabled = INTERRUPT_RECEIVED | INTERRUPT_PHY;
}

/* ---- set-up ---- */

err_t tide_lan9118_init(struct netif *interface) {
  chip_t *const chip = interface->state;
  if ((chip->power & POWER_READY) == 0) chip->byte_test = 0; /* a write ends the controller's sleep */
  if (!becomes(&chip->power, POWER_READY, POWER_READY) || chip->byte_test != BYTE_TEST) return ERR_IF;
  chip->hw_config = HW_RESET;
  if (!becomes(&chip->hw_config, HW_RESET, 0) || !becomes(&chip->eeprom_command, EEPROM_BUSY, 0)) return ERR_IF;
  const uint32_t address[2] = {mac_read(chip, MAC_ADDRESS_LOW), mac_read(chip, MAC_ADDRESS_HIGH)};
  memcpy(interface->hwaddr, address, ETH_HWADDR_LEN);
  interface->hwaddr_len = ETH_HWADDR_LEN;
  interface->mtu = 1500;
  interface->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET;
  interface->output = etharp_output;
  interface->linkoutput = send;
  interface->name[0] = 'e';
  interface->name[1] = 'n';
  only = interface;

  uint32_t control = CONTROL_RECEIVE | CONTROL_TRANSMIT;
#if LWIP_IGMP
  interface->flags |= NETIF_FLAG_IGMP;
  control |= CONTROL_ALL_MULTICAST;
#endif
  chip->hw_config = HW_TX_FIFO_5K;
  chip->fifo_levels = LEVELS;
  chip->tx_config = TX_ON_STATUS_OVERRUN;
  chip->rx_config = 0;
  mac_write(chip, MAC_CONTROL, control);
  chip->irq_config = IRQ_ENABLED_HIGH_PUSH_PULL;
  chip->interrupts = ~0u; /* cleared before the PHY causes any; the first input reads the PHY's state */
  phy_write(chip, PHY_ENABLED, PHY_DOWN | PHY_NEGOTIATED);
  phy_write(chip, PHY_CONTROL, PHY_NEGOTIATE);
  chip->enabled = INTERRUPT_RECEIVED | INTERRUPT_PHY;
  return ERR_OK;
}
