import { randomUUID } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { MediaEvent, RemoteMedia } from '../../machines/events.ts';
import type { MediaPlane, MediaSession } from '../../media/media-plane.ts';
import { WAV_HEADER_BYTES } from '../../media/wav.ts';

export interface SoakTally {
  calls: number;
  /** Calls lost with their worker. */
  lost: number;
  /** Calls rejected because no worker or port was free. */
  refused: number;
  /** Complete recordings. */
  recordings: number;
  /** Recordings that failed because the disk was full. */
  diskFull: number;
  faults: string[];
}

interface SoakCallOptions {
  index: number;
  /** RTP ports of the two phones. */
  ports: [number, number];
  plane: MediaPlane;
  tally: SoakTally;
  signal: AbortSignal;
  /** Sets where the phones send to. */
  retarget: (ports: [number, number]) => void;
  folder: () => string;
}

const TALK_MS = { least: 20_000, most: 60_000 };
const RETRY_MS = 250;

/** Two phones in one call after the other, until the soak is over. */
export class SoakCall {
  readonly #options: SoakCallOptions;

  constructor(options: SoakCallOptions) {
    this.#options = options;
  }

  async talk(): Promise<void> {
    const { signal, tally } = this.#options;
    while (!signal.aborted) {
      const session = await this.#open().catch(() => null);
      if (session === null) {
        tally.refused += 1;
        await pause(RETRY_MS);
      } else await this.#once(session);
    }
  }

  #lost = new AbortController();
  #hasDisk = true;

  async #open(): Promise<MediaSession> {
    this.#lost = new AbortController();
    this.#hasDisk = true;
    const onEvent = (event: MediaEvent<string>): void => {
      if (event.type === 'media.lost') this.#lost.abort();
      if (event.type === 'recording.failed') this.#hasDisk = false;
    };
    const { plane, index } = this.#options;
    const session = {
      sessionId: `soak-${index}`,
      parties: ['agent', 'customer'],
      signal: new AbortController().signal,
    };
    return await plane.openSession({ ...session, onEvent });
  }

  async #once(session: MediaSession): Promise<void> {
    const { ports, signal, tally, folder, retarget } = this.#options;
    const filePath = join(folder(), `${randomUUID()}.wav`);
    tally.calls += 1;
    try {
      await session.connectParty('agent', remote(ports[0]));
      await session.connectParty('customer', remote(ports[1]));
      await session.setRouting({
        receives: { agent: [{ party: 'customer' }], customer: [{ party: 'agent' }] },
        watched: [],
      });
      retarget([session.localOf('agent').rtpPort, session.localOf('customer').rtpPort]);
      await session.startRecording({ filePath, channels: { agent: 0, customer: 1 } }).catch(() => {
        this.#hasDisk = false;
      });
      const talkMs = TALK_MS.least + Math.random() * (TALK_MS.most - TALK_MS.least);
      const isOver = AbortSignal.any([signal, this.#lost.signal]);
      await pause(talkMs, undefined, { signal: isOver }).catch(() => {});
      retarget([0, 0]);
      const summary = await session.stopRecording();
      if (this.#lost.signal.aborted) tally.lost += 1;
      else if (!this.#hasDisk) tally.diskFull += 1;
      else await this.#judge(filePath, summary);
    } catch (error) {
      if (this.#lost.signal.aborted) tally.lost += 1;
      else tally.faults.push(error instanceof Error ? error.message : String(error));
    } finally {
      retarget([0, 0]);
      await session.close().catch(() => {});
      await rm(filePath, { force: true });
    }
  }

  /** Checks that header and summary agree with the file's length. */
  async #judge(filePath: string, summary: { bytes: number; durationMs: number } | null): Promise<void> {
    const { tally } = this.#options;
    const file = await open(filePath, 'r');
    try {
      const { size } = await file.stat();
      const header = Buffer.alloc(WAV_HEADER_BYTES);
      await file.read(header, 0, WAV_HEADER_BYTES, 0);
      const dataBytes = header.readUInt32LE(WAV_HEADER_BYTES - 4);
      if (summary?.bytes === size && dataBytes === size - WAV_HEADER_BYTES) tally.recordings += 1;
      else tally.faults.push(`a recording of ${size} bytes says ${dataBytes} and ${summary?.bytes}`);
    } finally {
      await file.close();
    }
  }
}

function remote(port: number): RemoteMedia {
  return {
    host: '127.0.0.1',
    rtpPort: port,
    rtcpPort: port + 1,
    codec: 'PCMU',
    payloadType: 0,
    telephoneEventPayloadType: null,
    direction: 'sendrecv',
  };
}
