import type { MessagePort } from 'node:worker_threads';
import type { LegQuality, MediaEvent, RemoteMedia } from '../machines/events.ts';
import type { AudioFormat } from '../machines/utterances.ts';
import type { FileSeal } from '../runtime/sealed-file/format.ts';

/**
 * The media plane: sessions of parties that worker threads relay, mix and record. Implemented in
 * `media-plane.workers.ts`.
 */
export interface MediaPlane {
  /**
   * Allocates an RTP+RTCP port pair for each party, on the least loaded worker.
   * @throws TandemError `no_free_channel` when the port range is used up or every worker is at full load.
   */
  openSession(options: OpenSessionOptions): Promise<MediaSession>;
  capacity(): MediaCapacity;
  /** Diagnostics: one entry per worker with its sessions and counters. */
  dump(): Promise<unknown>;
  close(): Promise<void>;
}

export interface MediaCapacity {
  sessions: number;
  /** Most two-party sessions that fit into the port range. */
  maxSessions: number;
  workers: number;
  /** Load of the least loaded worker, 0 to 1, by its own measurement. At 1 no session is opened. */
  load: number;
  /** By worker: busy share of the last second, 0 to 1. */
  utilization: readonly number[];
  /** By worker: the largest timer delay in the last second. Packets wait as long. */
  latenessMs: readonly number[];
}

/** Name of a party within its session, such as `agent`. */
export type PartyId = string;

export interface OpenSessionOptions {
  sessionId: string;
  parties: readonly PartyId[];
  /** Aborting closes the session: sockets shut, recording finished. */
  signal: AbortSignal;
  onEvent: (event: MediaEvent<PartyId>) => void;
  /** Receives measurements after `setMeasured(true)`. Default: none. */
  onMeasured?: (measurement: MediaMeasurement) => void;
  /** A watched party that sends no RTP for this long posts `rtp.timeout`. Default 20 000. */
  rtpTimeoutMs?: number;
}

/** Measurements of a session: levels every half second, quality every three seconds. */
export type MediaMeasurement =
  | { type: 'levels.measured'; levels: Record<PartyId, PartyLevel> }
  | { type: 'quality.measured'; quality: Record<PartyId, LegQuality | null> };

export function isMeasurement(event: MediaEvent<PartyId> | MediaMeasurement): event is MediaMeasurement {
  return event.type === 'levels.measured' || event.type === 'quality.measured';
}

export interface PartyLevel {
  /** Level of the party's audio since the last measurement; -96 for silence. */
  levelDbov: number;
  isSpeaking: boolean;
}

/** Routing of audio between parties. */
export interface Routing {
  /** By receiving party: a looped sound, or the parties it receives. A party without an entry receives nothing. */
  receives: Readonly<Record<PartyId, LoopedSound | readonly AudioSource[]>>;
  /** Parties whose silence posts `rtp.timeout`. */
  watched: readonly PartyId[];
  /** Parties whose keys are detected as tones if they have no telephone events. Default: `watched`. */
  pressing?: readonly PartyId[];
  /** Parties that are mixed into a recording channel of another party. Default: none. */
  recordedBeside?: Readonly<Record<PartyId, 0 | 1>>;
  /** Parties whose taps receive silence. Default: none. */
  tapMuted?: readonly PartyId[];
}

/**
 * Repeated sounds: ringing tone, hold music, and silence, which keeps peers from treating a call without packets as
 * dead.
 */
export type LoopedSound = 'ringback' | 'hold-music' | 'silence';

/** A party whose audio another one receives. */
export interface AudioSource {
  party: PartyId;
  /** Amplitude factor. Default 1: packets of a single party are then forwarded unchanged, without a mixer. */
  gain?: number;
}

export interface LegSample {
  packetsReceived: number;
  packetsLost: number;
  /** At the end of the sample. */
  jitterMs: number;
  /** From the last RTCP report; null if the peer sends none. */
  roundTripMs: number | null;
  /** E-model estimate, 1.0 to 4.5; null without received packets. */
  mos: number | null;
}

/** The address and even RTP port for an SDP offer. The RTCP port is one above. */
export interface LocalAddress {
  host: string;
  rtpPort: number;
}

export interface MediaSession {
  /** @throws RangeError for an unknown party */
  localOf(party: PartyId): LocalAddress;
  /**
   * Adds a party without routing. Resolves with the address to offer to it.
   * @throws TandemError `no_free_channel` when the port range is used up
   */
  addParty(party: PartyId): Promise<LocalAddress>;
  /**
   * Removes a party. Resolves with its quality once its ports are free; null without a measurement, or if it had left.
   * Idempotent.
   */
  removeParty(party: PartyId): Promise<LegQuality | null>;
  /** Sets or replaces a party's RTP destination. May be repeated when 183 and 200 differ or after a re-INVITE. */
  connectParty(party: PartyId, remote: RemoteMedia): Promise<void>;
  setRouting(routing: Routing): Promise<void>;
  /**
   * Plays a sound to a party, or waits while the party has us on hold. Posts `playback.started` when it begins.
   * Resolves when all is sent, or when `stopPlaying`, another playback or the end of the session stops it.
   */
  play(party: PartyId, sound: PlayedSound): Promise<SendingEnd>;
  /**
   * Sends key presses instead of other audio: as telephone events (RFC 4733), or as tones if the peer lacks them.
   * Resolves when all are sent or stopped; at once if the party has us on hold.
   */
  sendDigits(party: PartyId, presses: KeyPresses): Promise<SendingEnd>;
  stopPlaying(party: PartyId): Promise<void>;
  /**
   * Starts a stereo WAV recording, 16 bit, with the parties on the left (0) and right (1) channel. The rate is 16 kHz
   * if one of them now uses a wideband codec, else 8 kHz.
   */
  startRecording(options: RecordingOptions): Promise<void>;
  /** Mixes the recording tone into the parties' audio. Resolves when it has ended for all of them. */
  beep(parties: readonly PartyId[]): Promise<void>;
  pauseRecording(isPaused: boolean): Promise<void>;
  /** Finishes the file. Resolves when the header is complete and all bytes are written to the operating system. */
  stopRecording(): Promise<RecordingSummary | null>;
  /**
   * Writes each party's audio in real time, with silence for gaps, to a `SampleRing`, whose memory is posted once to
   * the party's transferred port. The format is `TAP_FORMAT`, or 16 kHz if the party now uses a wideband codec. A
   * consumer that is eight seconds behind ends its tap with `tap.overrun`.
   */
  startTap(ports: Readonly<Record<PartyId, MessagePort>>): Promise<void>;
  /**
   * Stops a tap, as removing its party does. Resolves when all audio so far is written and the port is closed.
   * Idempotent.
   */
  stopTap(party: PartyId): Promise<void>;
  /**
   * Starts answering machine detection on the party's audio. Posts `machine.detected` once; a `beep` may follow a
   * `machine` within a minute.
   */
  detectMachine(party: PartyId): Promise<void>;
  quality(): Promise<Record<PartyId, LegQuality | null>>;
  /** Quality of each party since its last sample or its connection; null without received or lost packets. */
  sampleQuality(): Promise<Record<PartyId, LegSample | null>>;
  /** Starts or stops measurements for `onMeasured`. While stopped, they cost nothing. */
  setMeasured(isMeasured: boolean): Promise<void>;
  /** Closes sockets and any recording. Idempotent. */
  close(): Promise<void>;
}

export interface RecordingOptions {
  filePath: string;
  channels: Readonly<Record<PartyId, 0 | 1>>;
  /** Encrypts the file as it is written. Default null: not encrypted. */
  seal?: FileSeal | null;
}

export interface PlayedSound {
  /** Linear, mono. The memory is transferred. */
  samples: Int16Array<ArrayBuffer>;
  /** Default 8000. Converted from 16 kHz for a party with an 8 kHz codec. */
  sampleRateHz?: 8000 | 16_000;
  /** True mixes it with the party's attenuated audio; false replaces that audio. */
  over: boolean;
  /** Repeats it until stopped. Default false. */
  isLooped?: boolean;
  /** If the party has us on hold at the start, plays nothing and answers `not-listening`. Default: it waits. */
  ifListening?: boolean;
  /** Id for `playback.started`. Default: none. */
  playbackId?: string;
}

export interface KeyPresses {
  /** `0`-`9`, `*`, `#`, `A`-`D`, and pauses: `w` is half a second, `W` a second. */
  digits: string;
  durationMs: number;
  /** Whether a peer without telephone events misses the keys while it hears a sound, which tones end. Default false. */
  yields?: boolean;
}

export type PlaybackEnd = 'played' | 'stopped';

/** `not-listening`: nothing was sent, because the party has us on hold. */
export type SendingEnd = PlaybackEnd | 'not-listening';

/** Format of a tap, unless its ring is 16 kHz. */
export const TAP_FORMAT = { encoding: 'linear16', sampleRateHz: 8000, channels: 1 } as const satisfies AudioFormat;

export interface RecordingSummary {
  filePath: string;
  bytes: number;
  durationMs: number;
}
