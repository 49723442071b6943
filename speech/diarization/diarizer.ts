import type { RecognisedWord } from '../../machines/utterances.ts';
import { groupVoices } from './clustering.ts';
import { EmbeddingVoice } from './embedding-voice.ts';
import type { GaussianVoice } from './gaussian-voice.ts';
import { cepstraOf, FRAME_MS } from './mfcc.ts';
import { type Turn, turnsOf } from './turns.ts';
import type { Voice } from './voice.ts';

/**
 * Separates the speakers of one stream: `speaker_1` spoke first. `basic` compares the spectra of turns, and confuses
 * similar voices and turns of less than a second; with a speaker model, `embeddings` are compared. Remembers a bounded
 * number of turns of a few hundred numbers each.
 */
export interface Diarizer {
  readonly method: 'basic' | 'embeddings';
  /**
   * Processes the next utterance; call it in order, one at a time. In a live stream, returns the words with speakers,
   * which never change afterwards. In a batch, returns the words unchanged, for `relabelled`.
   */
  label(utterance: DiarizedUtterance): Promise<RecognisedWord[]>;
  /** Returns the speaker turns of a batch, based on the whole recording. */
  finish(): SpeakerTurn[];
}

export interface DiarizedUtterance {
  /** 16 kHz mono, the whole utterance. */
  samples: Int16Array;
  /** Time of its first sample in the stream, like those of the words. */
  startMs: number;
  words: readonly RecognisedWord[];
}

export interface SpeakerTurn {
  startMs: number;
  endMs: number;
  speaker: string;
}

/** A speaker model. Native ones run in a child process. */
export interface SpeakerEmbedder {
  /** Embeds 16 kHz mono samples; null if they are too few for the model. */
  embed(samples: Int16Array): Promise<Float32Array | null>;
}

export interface DiarizerOptions {
  mode: 'live' | 'batch';
  /** Least and greatest number of speakers; null for any. A minimum needs at least as many turns. */
  minSpeakers: number | null;
  maxSpeakers: number | null;
  embedder?: SpeakerEmbedder;
}

export function createDiarizer({ embedder, ...options }: DiarizerOptions): Diarizer {
  if (embedder === undefined) {
    return new VoiceDiarizer<GaussianVoice>({ ...options, method: 'basic', voiceOf: async ({ voice }) => voice });
  }
  return new VoiceDiarizer<EmbeddingVoice>({
    ...options,
    method: 'embeddings',
    voiceOf: async ({ from, to, voice }, samples) => {
      const embedding = await embedder.embed(samples.slice(from * FRAME_SAMPLES, to * FRAME_SAMPLES));
      return embedding === null ? null : EmbeddingVoice.of(embedding, voice.frames);
    },
  });
}

/** Assigns the speakers of `finish` to words. Words outside of all turns get the nearest. */
export function relabelled(words: readonly RecognisedWord[], turns: readonly SpeakerTurn[]): RecognisedWord[] {
  return words.map((word) => ({ ...word, speaker: nearestTurn(word, turns)?.speaker ?? word.speaker }));
}

const FRAME_SAMPLES = 16 * FRAME_MS;
/** Upper limit of speakers. */
const MOST_SPEAKERS = 10;
/** Further turns are merged into the most similar one. A live stream compares all turns at each utterance. */
const MOST_TURNS = { live: 48, batch: 256 } as const;
/**
 * Similarity that joins voices even below the minimum number of speakers. At the start of a live stream the others may
 * not have spoken yet; at the end of a batch the number is known.
 */
const ALIKE_DESPITE_MINIMUM = { live: 0.8, batch: 0 } as const;

interface RememberedTurn<Kind> {
  spans: { startMs: number; endMs: number }[];
  voice: Kind;
  /** Label in the emitted words. */
  speaker: string | null;
}

class VoiceDiarizer<Kind extends Voice<Kind>> implements Diarizer {
  readonly method: Diarizer['method'];
  readonly #mode: DiarizerOptions['mode'];
  readonly #min: number;
  readonly #max: number;
  readonly #voiceOf: (turn: Turn, samples: Int16Array) => Promise<Kind | null>;
  readonly #turns: RememberedTurn<Kind>[] = [];
  /** All labels so far. */
  readonly #labels: string[] = [];
  #lastSpeaker: string | null = null;

  constructor(options: {
    mode: DiarizerOptions['mode'];
    minSpeakers: number | null;
    maxSpeakers: number | null;
    method: Diarizer['method'];
    voiceOf: (turn: Turn, samples: Int16Array) => Promise<Kind | null>;
  }) {
    this.method = options.method;
    this.#mode = options.mode;
    this.#max = Math.max(1, Math.min(MOST_SPEAKERS, options.maxSpeakers ?? MOST_SPEAKERS));
    this.#min = Math.max(1, Math.min(this.#max, options.minSpeakers ?? 1));
    this.#voiceOf = options.voiceOf;
  }

  async label({ samples, startMs, words }: DiarizedUtterance): Promise<RecognisedWord[]> {
    const remembered: { span: { startMs: number; endMs: number }; turn: RememberedTurn<Kind> }[] = [];
    for (const turn of turnsOf(cepstraOf(samples))) {
      const voice = await this.#voiceOf(turn, samples);
      const span = { startMs: startMs + turn.from * FRAME_MS, endMs: startMs + turn.to * FRAME_MS };
      if (voice !== null) remembered.push({ span, turn: this.#remember(span, voice) });
    }
    if (this.#mode === 'batch') return [...words];
    this.#nameTurns();
    const turns = remembered.map(({ span, turn }) => ({ ...span, speaker: turn.speaker! }));
    this.#lastSpeaker = turns.at(-1)?.speaker ?? this.#lastSpeaker ?? this.#newSpeaker();
    return words.map((word) => ({ ...word, speaker: nearestTurn(word, turns)?.speaker ?? this.#lastSpeaker }));
  }

  finish(): SpeakerTurn[] {
    const groups = this.#groups();
    return this.#turns
      .flatMap(({ spans }, index) => spans.map((span) => ({ ...span, speaker: `speaker_${groups[index]! + 1}` })))
      .toSorted((a, b) => a.startMs - b.startMs);
  }

  #remember(span: { startMs: number; endMs: number }, voice: Kind): RememberedTurn<Kind> {
    if (this.#turns.length < MOST_TURNS[this.#mode]) {
      const turn = { spans: [span], voice, speaker: null };
      this.#turns.push(turn);
      return turn;
    }
    const nearest = this.#turns.reduce((best, turn) =>
      turn.voice.distanceTo(voice) < best.voice.distanceTo(voice) ? turn : best,
    );
    if (this.#mode === 'batch') nearest.spans.push(span);
    nearest.voice = nearest.voice.joinedWith(voice);
    return nearest;
  }

  #groups(): number[] {
    return groupVoices(
      this.#turns.map(({ voice }) => voice),
      { min: this.#min, max: this.#max, alikeDespiteMin: ALIKE_DESPITE_MINIMUM[this.#mode] },
    );
  }

  /**
   * Labels each group as most of it was labelled before. A group without a label gets a new one or, at the limit, one
   * that no group has any longer because it was assigned by mistake.
   */
  #nameTurns(): void {
    const groups = this.#groups();
    const names = new Map<number, string>();
    const isBorne = (name: string) => [...names.values()].includes(name);
    for (const { group, name } of this.#votes(groups)) {
      if (!names.has(group) && !isBorne(name)) names.set(group, name);
    }
    for (const [index, turn] of this.#turns.entries()) {
      if (turn.speaker !== null) continue;
      const group = groups[index]!;
      const free = this.#labels.find((name) => !isBorne(name));
      const name = names.get(group) ?? (this.#labels.length < this.#max ? this.#newSpeaker() : free);
      if (name !== undefined) names.set(group, name);
      turn.speaker = name ?? this.#nearestNamed(turn.voice);
    }
  }

  /** Past labels of each group, weighted by speech, highest first. */
  #votes(groups: readonly number[]): { group: number; name: string; frames: number }[] {
    const votes = new Map<string, { group: number; name: string; frames: number }>();
    for (const [index, { speaker, voice }] of this.#turns.entries()) {
      if (speaker === null) continue;
      const key = `${groups[index]} ${speaker}`;
      const vote = votes.get(key) ?? { group: groups[index]!, name: speaker, frames: 0 };
      votes.set(key, { ...vote, frames: vote.frames + voice.frames });
    }
    return [...votes.values()].toSorted((a, b) => b.frames - a.frames);
  }

  #nearestNamed(voice: Kind): string {
    const named = this.#turns.filter(({ speaker }) => speaker !== null);
    return named.reduce((best, turn) => (turn.voice.distanceTo(voice) < best.voice.distanceTo(voice) ? turn : best))
      .speaker!;
  }

  #newSpeaker(): string {
    const name = `speaker_${this.#labels.length + 1}`;
    this.#labels.push(name);
    return name;
  }
}

function nearestTurn<T extends { startMs: number; endMs: number }>(
  { startMs, endMs }: { startMs: number; endMs: number },
  turns: readonly T[],
): T | undefined {
  const middleMs = (startMs + endMs) / 2;
  const away = (turn: T) => Math.max(turn.startMs - middleMs, middleMs - turn.endMs, 0);
  return turns.reduce<T | undefined>(
    (nearest, turn) => (nearest === undefined || away(turn) < away(nearest) ? turn : nearest),
    undefined,
  );
}
