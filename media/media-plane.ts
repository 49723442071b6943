import type { MessagePort } from 'node:worker_threads';
import type { LegQuality, MediaEvent, RemoteMedia } from '../machines/events.ts';
import type { AudioFormat } from '../machines/utterances.ts';
import type { FileSeal } from '../runtime/sealed-file/format.ts';

/**
 * The media plane as the actors see it: sessions of parties, relayed, mixed, toned and recorded in worker threads.
 * Implemented in `media-plane.workers.ts`.
 */
export interface MediaPlane {
  /**
   * Allocates an RTP+RTCP port pair for each party, on the least loaded worker.
   * @throws TandemError `no_free_channel` when the port range is used up, or every worker has as much to do as it can.
   */
  openSession(options: OpenSessionOptions): Promise<MediaSession>;
  capacity(): MediaCapacity;
  /** Everything worth seeing when something is wrong: one entry per worker with its sessions and counters. */
  dump(): Promise<unknown>;
  close(): Promise<void>;
}

export interface MediaCapacity {
  sessions: number;
  /** The most sessions of two parties that fit into the port range. */
  maxSessions: number;
  /** That run. */
  workers: number;
  /** Of the least loaded worker, by its own measurement, 0 to 1. At 1 no session is opened. */
  load: number;
  /** Of each worker: the share of the last second in which it had something to do, 0 to 1. */
  utilization: readonly number[];
}

/** Names a party within its session, such as `agent`. */
export type PartyId = string;

export interface OpenSessionOptions {
  sessionId: string;
  /** Who takes part from the start. */
  parties: readonly PartyId[];
  /** Aborting closes the session: sockets shut, recording finished. */
  signal: AbortSignal;
  onEvent: (event: MediaEvent<PartyId>) => void;
  /** A watched party that is not heard for this long posts `rtp.timeout`. Default 20 000. */
  rtpTimeoutMs?: number;
}

/** Who hears whom. */
export interface Routing {
  /** A party that is not named hears nothing. */
  hears: Readonly<Record<PartyId, LoopedSound | readonly HeardParty[]>>;
  /** Parties whose silence posts `rtp.timeout`. */
  watched: readonly PartyId[];
  /** Parties that are heard on a channel of the recording beside the one it was started for. Default: none. */
  recordedBeside?: Readonly<Record<PartyId, 0 | 1>>;
  /** Parties whose taps get silence. Default: none. */
  tapMuted?: readonly PartyId[];
}

/**
 * Sounds made here, repeated for as long as they are heard: the ringing tone, music for a party on hold, and silence, which
 * keeps peers from taking a call without packets for dead.
 */
export type LoopedSound = 'ringback' | 'hold-music' | 'silence';

export interface HeardParty {
  party: PartyId;
  /** Factor of the amplitude. Default 1: a party heard alone is then forwarded as it came, without a mixer. */
  gain?: number;
}

/** The address and even RTP port to offer to a party; RTCP is one above. */
export interface LocalAddress {
  host: string;
  rtpPort: number;
}

export interface MediaSession {
  /** @throws RangeError for a party that the session does not have */
  localOf(party: PartyId): LocalAddress;
  /**
   * Adds a party, which hears nothing and is not heard yet; resolves with the address to offer to it.
   * @throws TandemError `no_free_channel` when the port range is used up
   */
  addParty(party: PartyId): Promise<LocalAddress>;
  /**
   * Idempotent. Resolves when no party hears it any more and its ports are free, with what was measured of it; null when
   * nothing was, or it had left before.
   */
  removeParty(party: PartyId): Promise<LegQuality | null>;
  /** Sets or replaces where a party's RTP goes; may be called again when 183 and 200 or a re-INVITE disagree. */
  connectParty(party: PartyId, remote: RemoteMedia): Promise<void>;
  /** Replaces who hears whom. */
  setRouting(routing: Routing): Promise<void>;
  /**
   * Plays a sound to a party, which `playback.started` tells when it begins. While the party has us on hold it waits.
   * Resolves when all of it is sent, or something ended it: `stopPlaying`, another one for the party, the session's end.
   */
  play(party: PartyId, sound: PlayedSound): Promise<SendingEnd>;
  /**
   * Sends key presses to a party, as telephone events (RFC 4733) or as tones to a peer that takes none; it hears nothing
   * else meanwhile. Resolves when all are sent, or something ended them; at once if the party does not listen.
   */
  sendDigits(party: PartyId, presses: KeyPresses): Promise<SendingEnd>;
  /** Ends what is played to the party. */
  stopPlaying(party: PartyId): Promise<void>;
  /**
   * Starts writing one stereo WAV of 16 bit with the given parties on the left (0) and right (1) channel: at 16 kHz when one
   * of them uses a wideband codec now, else at 8 kHz.
   */
  startRecording(options: RecordingOptions): Promise<void>;
  /** Plays the recording tone to the parties, over what they hear. Resolves when it has ended for all of them. */
  beep(parties: readonly PartyId[]): Promise<void>;
  /** While paused, the recording goes on with silence. */
  pauseRecording(isPaused: boolean): Promise<void>;
  /** Finishes the file; resolves when its header is right and its bytes are with the operating system. */
  stopRecording(): Promise<RecordingSummary | null>;
  /**
   * From now on writes what each party says, in real time, with silence where nothing was received, to a `SampleRing`
   * whose memory it posts once to the party's port: as `TAP_FORMAT`, or at 16 kHz when the party uses a wideband codec now.
   * The ports are handed over. A listener that falls eight seconds behind ends its tap, which `tap.overrun` tells.
   */
  startTap(ports: Readonly<Record<PartyId, MessagePort>>): Promise<void>;
  /**
   * Writes what the party said until now. Resolves when all of it is written; nothing follows, and the port is closed.
   * Idempotent. The tap of a party that is removed stops in the same way.
   */
  stopTap(party: PartyId): Promise<void>;
  /**
   * Detects who or what has answered, by what the party says from now on, and posts `machine.detected` once. A `beep` may
   * follow a `machine` within a minute.
   */
  detectMachine(party: PartyId): Promise<void>;
  quality(): Promise<Record<PartyId, LegQuality | null>>;
  /** Idempotent. Closes sockets and any recording. */
  close(): Promise<void>;
}

export interface RecordingOptions {
  filePath: string;
  channels: Readonly<Record<PartyId, 0 | 1>>;
  /** Encrypts the file while it is written. Default null: it stays in clear. */
  seal?: FileSeal | null;
}

export interface PlayedSound {
  /** Linear, mono. Its memory is handed over. */
  samples: Int16Array<ArrayBuffer>;
  /** Of `samples`. Default 8000. A party with a codec of 8 kHz hears 16 kHz converted. */
  sampleRateHz?: 8000 | 16_000;
  /** Over what the party hears, which is turned down meanwhile; else instead of it. */
  over: boolean;
  /** Repeats it until something ends it. Default: it is played once. */
  isLooped?: boolean;
  /** Plays nothing, and answers `not-listening`, if the party has us on hold when it begins. Default: it waits. */
  ifListening?: boolean;
  /** Names it in `playback.started`. Default: none. */
  playbackId?: string;
}

export interface KeyPresses {
  /** `0`-`9`, `*`, `#`, `A`-`D`, and `w` and `W` for pauses of half a second and a second. */
  digits: string;
  /** How long each key is held. */
  durationMs: number;
}

export type PlaybackEnd = 'played' | 'stopped';

/** `not-listening`: nothing was sent, because the party has us on hold. */
export type SendingEnd = PlaybackEnd | 'not-listening';

/** What a tap posts, unless its ring says 16 kHz. */
export const TAP_FORMAT = { encoding: 'linear16', sampleRateHz: 8000, channels: 1 } as const satisfies AudioFormat;

export interface RecordingSummary {
  filePath: string;
  bytes: number;
  durationMs: number;
}
