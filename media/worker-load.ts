import { performance } from 'node:perf_hooks';

/**
 * How busy a media worker is. The worker measures itself once a second and writes the result to memory that it shares
 * with the main thread, which reads it before it opens a session. A message from an overloaded worker would come late.
 */

export interface WorkerLoadReading {
  /** Share of the time in which the thread had something to do, 0 to 1. */
  utilization: number;
  /** The longest that its timers were late. */
  latenessMs: number;
  /** Received. */
  packetsPerSecond: number;
  /** On the system's monotonic clock; 0 before the first measurement. */
  measuredAtMs: number;
}

/** Of a worker without sessions. */
export const IDLE: WorkerLoadReading = { utilization: 0, latenessMs: 0, packetsPerSecond: 0, measuredAtMs: 0 };

export class WorkerLoad {
  static readonly BYTES = 32;
  readonly #values: Float64Array;

  /** @param memory of `BYTES`, zeroed before its first use. */
  constructor(memory: SharedArrayBuffer) {
    this.#values = new Float64Array(memory);
  }

  write({ utilization, latenessMs, packetsPerSecond, measuredAtMs }: WorkerLoadReading): void {
    this.#values.set([utilization, latenessMs, packetsPerSecond, measuredAtMs]);
  }

  read(): WorkerLoadReading {
    const [utilization, latenessMs, packetsPerSecond, measuredAtMs] = this.#values as unknown as [
      number,
      number,
      number,
      number,
    ];
    return { utilization, latenessMs, packetsPerSecond, measuredAtMs };
  }
}

/** The load of a worker that takes no more sessions. */
export const FULL = 1;
/** Above this utilization, packets wait. */
const MOST_UTILIZATION = 0.85;
/** Timers of a busy thread that are later than this mean delayed packets. */
const MOST_LATENESS_MS = 40;
const BUSY_UTILIZATION = 0.5;
/** A worker that has not measured itself for this long is overloaded. */
const MOST_AGE_MS = 5000;
/** A worker always takes this many, so that a busy machine does not stop all calls. */
const FEWEST_SESSIONS = 10;
/** Both parties of a call send fifty. */
const PACKETS_PER_SECOND_OF_A_CALL = 100;
/** Assumed cost of a call until a busy worker has measured it. */
const UTILIZATION_OF_A_CALL = 0.001;
/** Below this, the worker wakes for each packet, so the cost of a call says nothing about many calls. */
const LEAST_TELLING_UTILIZATION = 0.3;
/** Unless it has this many: then the machine is fast. */
const FEWEST_TELLING_CALLS = 100;

/**
 * The share of a worker's capacity that its sessions take, 0 to 1; 1 is `FULL`. Sessions count as if all of them talked:
 * those that still ring will.
 */
export function loadOf(reading: WorkerLoadReading, sessions: number, nowMs: number): number {
  const { utilization, latenessMs, packetsPerSecond, measuredAtMs } = reading;
  const callsTalking = packetsPerSecond / PACKETS_PER_SECOND_OF_A_CALL;
  const load = Math.max(utilization, sessions * utilizationOfACall(utilization, callsTalking)) / MOST_UTILIZATION;
  if (sessions < FEWEST_SESSIONS) return Math.min(load, 0.99);
  const isStuck = measuredAtMs > 0 && nowMs - measuredAtMs > MOST_AGE_MS;
  const isLate = latenessMs > MOST_LATENESS_MS && utilization > BUSY_UTILIZATION;
  return isStuck || isLate ? FULL : Math.min(load, FULL);
}

function utilizationOfACall(utilization: number, callsTalking: number): number {
  if (callsTalking < 1) return UTILIZATION_OF_A_CALL;
  const measured = utilization / callsTalking;
  if (utilization >= LEAST_TELLING_UTILIZATION) return measured;
  return callsTalking < FEWEST_TELLING_CALLS ? UTILIZATION_OF_A_CALL : Math.min(measured, UTILIZATION_OF_A_CALL);
}

const MEASURE_MS = 1000;

interface LoadMeterOptions {
  load: WorkerLoad;
  /** How often `tick` is called when the thread is not late. */
  tickMs: number;
  /** Received so far. */
  packets: () => number;
  /** Default `monotonicMs`. */
  nowMs?: () => number;
}

/** Measures the thread that it runs in. */
export class LoadMeter {
  readonly #options: LoadMeterOptions;
  #since = performance.eventLoopUtilization();
  #packetsBefore: number;
  readonly #nowMs: () => number;
  #startedAtMs: number;
  #tickedAtMs: number;
  #latenessMs = 0;
  /** Of the second before: one busy second is no trend. */
  #utilizationBefore = 0;

  constructor(options: LoadMeterOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? monotonicMs;
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
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, this.#since);
    const packetsNow = packets();
    load.write({
      utilization: (utilization + this.#utilizationBefore) / 2,
      latenessMs: this.#latenessMs,
      packetsPerSecond: ((packetsNow - this.#packetsBefore) * 1000) / elapsedMs,
      measuredAtMs: nowMs,
    });
    this.#utilizationBefore = utilization;
    this.#since = now;
    this.#packetsBefore = packetsNow;
    this.#startedAtMs = nowMs;
    this.#latenessMs = 0;
  }
}

/** The same in all threads. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
