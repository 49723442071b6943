import { performance } from 'node:perf_hooks';

/**
 * Load of a media worker. The worker measures itself once a second and writes the result to memory shared with the main
 * thread, which reads it before opening a session. A message from an overloaded worker would arrive late.
 */

export interface WorkerLoadReading {
  /** Busy share of the time, 0 to 1. */
  utilization: number;
  latenessMs: number;
  /** Received packets. */
  packetsPerSecond: number;
  /** Measured utilization per active call under load; 0 before that. */
  utilizationOfACall: number;
  /** On the system's monotonic clock; 0 before the first measurement. */
  measuredAtMs: number;
}

export const IDLE: WorkerLoadReading = {
  utilization: 0,
  latenessMs: 0,
  packetsPerSecond: 0,
  utilizationOfACall: 0,
  measuredAtMs: 0,
};

export class WorkerLoad {
  static readonly BYTES = 40;
  readonly #values: Float64Array;

  /** @param memory of `BYTES`, zeroed before its first use. */
  constructor(memory: SharedArrayBuffer) {
    this.#values = new Float64Array(memory);
  }

  write(reading: WorkerLoadReading): void {
    const { utilization, latenessMs, packetsPerSecond, utilizationOfACall, measuredAtMs } = reading;
    this.#values.set([utilization, latenessMs, packetsPerSecond, utilizationOfACall, measuredAtMs]);
  }

  read(): WorkerLoadReading {
    const [utilization = 0, latenessMs = 0, packetsPerSecond = 0, utilizationOfACall = 0, measuredAtMs = 0] =
      this.#values;
    return { utilization, latenessMs, packetsPerSecond, utilizationOfACall, measuredAtMs };
  }
}

/** Load at which a worker takes no more sessions. */
export const FULL = 1;
/** Above this utilization, packets wait. */
const MOST_UTILIZATION = 0.85;
/** Later timers of a busy thread mean delayed packets. */
const MOST_LATENESS_MS = 40;
const BUSY_UTILIZATION = 0.5;
/** A worker without a measurement for this long is overloaded. */
const MOST_AGE_MS = 5000;
/** A worker always takes this many, so that a busy machine does not stop all calls. */
const FEWEST_SESSIONS = 10;
/** Each of the two parties of a call sends fifty. */
const PACKETS_PER_SECOND_OF_A_CALL = 100;
/** Assumed before a measurement: a recorded call on a slow processor. */
const ASSUMED_UTILIZATION_OF_A_CALL = 0.0025;
/** Below this, the worker wakes for each packet, so the cost of a call does not scale to many calls. */
const LEAST_REPRESENTATIVE_UTILIZATION = 0.3;
/** Exception: with this many calls, the machine is fast. */
const FEWEST_REPRESENTATIVE_CALLS = 100;

/**
 * Share of a worker's capacity in use, 0 to 1; 1 is `FULL`. All sessions count as active, because ringing ones soon
 * will be.
 */
export function loadOf(reading: WorkerLoadReading, sessions: number, nowMs: number): number {
  const { utilization, latenessMs, packetsPerSecond, measuredAtMs } = reading;
  const callsTalking = packetsPerSecond / PACKETS_PER_SECOND_OF_A_CALL;
  const isRepresentative =
    callsTalking >= FEWEST_REPRESENTATIVE_CALLS || utilization >= LEAST_REPRESENTATIVE_UTILIZATION;
  const known = reading.utilizationOfACall || ASSUMED_UTILIZATION_OF_A_CALL;
  const ofACall = isRepresentative && callsTalking >= 1 ? utilization / callsTalking : known;
  const load = Math.max(utilization, sessions * ofACall) / MOST_UTILIZATION;
  if (sessions < FEWEST_SESSIONS) return Math.min(load, 0.99);
  const isStuck = measuredAtMs > 0 && nowMs - measuredAtMs > MOST_AGE_MS;
  const isLate = latenessMs > MOST_LATENESS_MS && utilization > BUSY_UTILIZATION;
  return isStuck || isLate ? FULL : Math.min(load, FULL);
}

/** Updates the cost of a call with a measurement, whose weight is a fifth. */
function learned(
  known: number,
  { utilization, packetsPerSecond }: Pick<WorkerLoadReading, 'utilization' | 'packetsPerSecond'>,
): number {
  const callsTalking = packetsPerSecond / PACKETS_PER_SECOND_OF_A_CALL;
  if (callsTalking < FEWEST_REPRESENTATIVE_CALLS) return known;
  const measured = utilization / callsTalking;
  return known === 0 ? measured : known + (measured - known) / 5;
}

const MEASURE_MS = 1000;

interface LoadMeterOptions {
  load: WorkerLoad;
  /** Interval of `tick` if the thread is not late. */
  tickMs: number;
  packets: () => number;
  /** Default `monotonicMs`. */
  nowMs?: () => number;
  /** Total busy time of the thread. Default: from its event loop. */
  activeMs?: () => number;
}

export class LoadMeter {
  readonly #options: LoadMeterOptions;
  #packetsBefore: number;
  readonly #nowMs: () => number;
  readonly #activeMs: () => number;
  #activeMsBefore: number;
  #startedAtMs: number;
  #tickedAtMs: number;
  #latenessMs = 0;
  /** Previous second, because one busy second is not a trend. */
  #before = { utilization: 0, packetsPerSecond: 0 };

  constructor(options: LoadMeterOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? monotonicMs;
    this.#activeMs = options.activeMs ?? (() => performance.eventLoopUtilization().active);
    this.#activeMsBefore = this.#activeMs();
    this.#startedAtMs = this.#nowMs();
    this.#tickedAtMs = this.#startedAtMs;
    this.#packetsBefore = options.packets();
  }

  tick(): void {
    const nowMs = this.#nowMs();
    const { load, tickMs, packets } = this.#options;
    this.#latenessMs = Math.max(this.#latenessMs, nowMs - this.#tickedAtMs - tickMs);
    this.#tickedAtMs = nowMs;
    const elapsedMs = nowMs - this.#startedAtMs;
    if (elapsedMs < MEASURE_MS) return;
    const activeMs = this.#activeMs();
    const utilization = Math.min(1, (activeMs - this.#activeMsBefore) / elapsedMs);
    const packetsNow = packets();
    const packetsPerSecond = ((packetsNow - this.#packetsBefore) * 1000) / elapsedMs;
    // Both from the same two seconds, or calls would seem cheap while their number rises.
    const averages = {
      utilization: (utilization + this.#before.utilization) / 2,
      packetsPerSecond: (packetsPerSecond + this.#before.packetsPerSecond) / 2,
    };
    load.write({
      ...averages,
      latenessMs: this.#latenessMs,
      utilizationOfACall: learned(load.read().utilizationOfACall, averages),
      measuredAtMs: nowMs,
    });
    this.#before = { utilization, packetsPerSecond };
    this.#activeMsBefore = activeMs;
    this.#packetsBefore = packetsNow;
    this.#startedAtMs = nowMs;
    this.#latenessMs = 0;
  }
}

/** Comparable across threads. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
