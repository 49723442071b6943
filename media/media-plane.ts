import type { MessagePort } from 'node:worker_threads';
import type { LegName, LegQuality, MediaEvent, RemoteMedia } from '../machines/events.ts';
import type { AudioFormat } from '../machines/utterances.ts';

/**
 * The media plane as the actors see it: sessions of two RTP legs, relayed, toned and recorded in worker threads.
 * Implemented in `media-plane.workers.ts`.
 */
export interface MediaPlane {
  /**
   * Allocates two RTP+RTCP port pairs on the least loaded worker.
   * @throws TandemError `no_free_channel` when the port range is used up.
   */
  openSession(options: OpenSessionOptions): Promise<MediaSession>;
  /** Sessions open, the most that fit into the port range, and the number of live workers. */
  capacity(): { sessions: number; maxSessions: number; workers: number };
  /** Everything worth seeing when something is wrong: one entry per worker with its sessions and counters. */
  dump(): Promise<unknown>;
  close(): Promise<void>;
}

export interface OpenSessionOptions {
  sessionId: string;
  /** Aborting closes the session: sockets shut, recording finished. */
  signal: AbortSignal;
  onEvent: (event: MediaEvent) => void;
  /** A connected leg that is heard from no more for this long posts `rtp.timeout`. Default 20 000. */
  rtpTimeoutMs?: number;
}

/**
 * What the legs hear. `idle`: nothing. `ringback`: the agent hears the ringing tone made here.
 * `early-media`: the agent hears the customer's leg, one way. `bridged`: both ways.
 */
export type MediaPath = 'idle' | 'ringback' | 'early-media' | 'bridged';

export interface MediaSession {
  /** The address and even RTP port to offer to each leg; RTCP is one above. */
  readonly local: Record<LegName, { host: string; rtpPort: number }>;
  /** Sets or replaces where a leg's RTP goes; may be called again when 183 and 200 or a re-INVITE disagree. */
  connectLeg(leg: LegName, remote: RemoteMedia): Promise<void>;
  /** Also ends what is played. */
  setPath(path: MediaPath): Promise<void>;
  /**
   * Says something to a leg, which `playback.started` tells when it begins: while the leg has us on hold it waits.
   * Resolves when all of it is sent, or something ended it: a path, another one for the leg, the end of the session.
   */
  play(leg: LegName, sound: PlayedSound): Promise<PlaybackEnd>;
  /** Starts writing both legs to one stereo WAV (left agent, right customer, 8 kHz, 16 bit). */
  startRecording(options: { filePath: string }): Promise<void>;
  /** Finishes the file; resolves when its header is right and its bytes are with the operating system. */
  stopRecording(): Promise<RecordingSummary | null>;
  /**
   * From now on posts what each leg says to its port, which is handed over: `Uint8Array`s of `TAP_FORMAT`, in real
   * time, with silence where nothing was received. Whoever listens answers each with `BytesTaken`; a listener that falls
   * ten seconds behind ends its tap, which `tap.overrun` tells.
   */
  startTap(ports: Record<LegName, MessagePort>): Promise<void>;
  /** Posts what was said until now. Resolves when all of it is posted; nothing follows, and the ports are closed. */
  stopTap(): Promise<void>;
  quality(): Promise<Record<LegName, LegQuality | null>>;
  /** Idempotent. Closes sockets and any recording. */
  close(): Promise<void>;
}

export interface PlayedSound {
  /** Linear, 8 kHz, mono. Its memory is handed over. */
  samples: Int16Array<ArrayBuffer>;
  /** Over the other party, who is turned down meanwhile; else instead of whatever the leg would hear. */
  over: boolean;
}

export type PlaybackEnd = 'played' | 'stopped';

/** What a tap posts, whatever codec the leg uses. */
export const TAP_FORMAT = { encoding: 'linear16', sampleRateHz: 8000, channels: 1 } as const satisfies AudioFormat;

export interface RecordingSummary {
  filePath: string;
  bytes: number;
  durationMs: number;
}
