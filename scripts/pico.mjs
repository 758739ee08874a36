// SPDX-License-Identifier: Apache-2.0
// A Raspberry Pi Pico in the emulator rp2040js, which is no part of tide:
//   node scripts/pico.mjs RP2040JS BOOTROM PROGRAM.hex TERMINAL
// RP2040JS: folder of the npm package; BOOTROM: demo/bootrom.ts of its repository, or the ROM as a binary file. UART0
// is the terminal (such as an end of tide-line), with the byte times of 115,200 Bd towards the board. Virtual time does
// not overtake real time, because the agent runs in real time. Each second, a line of JSON gives both times and the
// share of time in which the core slept.
import fs from 'fs';
import path from 'path';
import { pathToFileURL } from 'url';

const [package_folder, bootrom, program, terminal] = process.argv.slice(2);
const part = (name) => import(pathToFileURL(path.join(path.resolve(package_folder), 'dist/esm', name)));
const { RP2040 } = await part('rp2040.js');
const { SimulationClock } = await part('clock/simulation-clock.js');

const CYCLE_NS = 8, BYTE_NS = 86806, SLEEP_NS = 50000, INSTRUCTIONS = 20000;

function rom(file) {
  if (!file.endsWith('.ts')) return new Uint32Array(new Uint8Array(fs.readFileSync(file)).buffer);
  return Uint32Array.from(fs.readFileSync(file, 'utf8').match(/0x[0-9a-f]{8}/g), Number);
}

function load(hex, flash) { // Reads Intel HEX, for addresses from 0x10000000 on.
  let high = 0;
  for (const line of fs.readFileSync(hex, 'ascii').split('\n')) {
    const bytes = Buffer.from(line.trim().slice(1), 'hex');
    if (bytes[3] === 4) high = bytes.readUInt16BE(4) * 65536 - 0x10000000;
    if (bytes[3] === 0) flash.set(bytes.subarray(4, 4 + bytes[0]), high + bytes.readUInt16BE(1));
  }
}

const line = fs.openSync(terminal, fs.constants.O_RDWR | fs.constants.O_NOCTTY | fs.constants.O_NONBLOCK);
const clock = new SimulationClock();
const board = new RP2040(clock);
board.logger = { debug() {}, info() {}, warn() {}, error(name, text) { process.stderr.write(`${name}: ${text}\n`); } };
board.loadBootrom(rom(bootrom));
load(program, board.flash);
board.core.PC = 0x10000000;

let up = [], down = [], next_byte_ns = 0, slept_ns = 0;
const uart = board.uart[0], input = Buffer.alloc(4096), core = board.core;
uart.onByte = (byte) => up.push(byte);

function step() {
  for (let i = 0; i < INSTRUCTIONS; i++) {
    if (core.waiting) {
      const ns = Math.max(CYCLE_NS, Math.min(clock.nanosToNextAlarm || SLEEP_NS, SLEEP_NS));
      clock.tick(ns);
      slept_ns += ns;
      i += 99; // a step of sleep is long, so the line is looked at after fewer steps
    } else {
      clock.tick(core.executeInstruction() * CYCLE_NS);
    }
    if (down.length > 0 && clock.nanos >= next_byte_ns && !uart.rxFIFO.full) {
      uart.feedByte(down.shift());
      next_byte_ns = clock.nanos + BYTE_NS;
    }
  }
}

function exchange() {
  try {
    if (up.length > 0) up = up.slice(fs.writeSync(line, Buffer.from(up)));
    down.push(...input.subarray(0, fs.readSync(line, input, 0, input.length, null)));
  } catch (error) {
    if (error.code !== 'EAGAIN') throw error;
  }
}

const pause = new Int32Array(new SharedArrayBuffer(4)), started_ms = Date.now();
for (let said_s = 0; ;) {
  step();
  exchange();
  const real_ms = Date.now() - started_ms, ahead_ms = clock.nanos / 1e6 - real_ms;
  if (ahead_ms > 1) Atomics.wait(pause, 0, 0, Math.min(ahead_ms, 20));
  if (real_ms / 1000 < said_s + 1) continue;
  said_s = real_ms / 1000;
  const share = slept_ns / Math.max(clock.nanos, 1);
  console.log(JSON.stringify({ virtual_s: clock.nanos / 1e9, real_s: said_s, slept: Number(share.toFixed(3)) }));
}
