import { seededRandom } from '../../../runtime/seeded-random.ts';
import { MUSIC, NOISES, SIGNALLING } from '../listening/sounds.ts';
import { beep, joined, lengthMs, overLine, type Random, type Sentences, type Speakers, silence } from './answers.ts';

/** The training set of the detector. */
export const TUNING: Sentences = {
  voices: ['en-us', 'en-us+f3', 'en-gb-x-rp+m3', 'de', 'de+f2', 'hi+f4', 'es+m1', 'fr+f1'],
  human: [
    'hello',
    'hello?',
    'yes',
    'yeah hello',
    'hi this is anna',
    'hello who is it',
    'haan ji',
    'hallo',
    'good morning',
  ],
  machine: [
    ['hi you have reached john', 'i can not take your call right now', 'please leave a message after the tone'],
    ['the person you are calling is not available', 'please try again later'],
    ['welcome to the customer service of acme', 'for sales press one', 'for support press two'],
    ['sie sind verbunden mit der mailbox von anna', 'bitte hinterlassen sie eine nachricht'],
  ],
};

/** The test set, with other voices and words. */
export const HELD_OUT: Sentences = {
  voices: [
    'en-us-nyc+f2',
    'en-gb-scotland+m2',
    'en-029+m5',
    'it',
    'it+f3',
    'pt-br+f1',
    'nl+m4',
    'pl+f2',
    'ta+m1',
    'mr+f5',
  ],
  human: [
    'hey',
    'hello hello',
    'speaking',
    'yes please',
    'hi there',
    'namaste',
    'who is this',
    'pronto',
    'ja bitte',
    'good evening',
  ],
  machine: [
    [
      'this is the voicemail of maria',
      'i am on holiday until monday',
      'leave your name and number and i will call back',
    ],
    ['your call has been forwarded to an automatic voice message system', 'at the tone please record your message'],
    ['thank you for calling the city hospital', 'all our lines are busy at the moment', 'please hold the line'],
    ['the number you have dialed is switched off', 'please dial again after some time'],
    ['hey it is tom', 'i am probably driving so do not wait', 'say what you want after the beep'],
  ],
};

export type AnswerKind = 'human' | 'machine' | 'machine without a beep' | 'beep' | 'fax' | 'unknown';

export interface AnswerCase {
  name: string;
  samples: Int16Array;
  greetingEndsAtMs: number;
}

/** Recordings of a kind, deterministic for a seed. */
export async function* casesOf(
  kind: AnswerKind,
  { count, seed, sentences, speakers }: { count: number; seed: number; sentences: Sentences; speakers: Speakers },
): AsyncGenerator<AnswerCase> {
  for (let index = 0; index < count; index++) {
    const random = seededRandom(seed * 1000 + index);
    const made = await MAKERS[kind](random, { sentences, speakers });
    yield { ...made, name: `${kind} ${index}: ${made.name}`, samples: overLine(made.samples, random) };
  }
}

type Maker = (random: Random, said: { sentences: Sentences; speakers: Speakers }) => Promise<AnswerCase>;

const MAKERS: Record<AnswerKind, Maker> = {
  async human(random, { sentences, speakers }) {
    const voice = pick(sentences.voices, random);
    const text = pick(sentences.human, random);
    const speed = between(0.8, 1.25, random);
    const before = silence(between(0, 2000, random));
    const greeting = await speakers.say(text, voice, speed);
    const again = random() < 0.3 ? await speakers.say('hello', voice, speed) : silence(0);
    const samples = joined(before, greeting, silence(between(1600, 2600, random)), again, silence(4000));
    return { name: `${text} (${voice})`, samples, greetingEndsAtMs: lengthMs(before) + lengthMs(greeting) };
  },

  async machine(random, said) {
    const { name, samples } = await announcement(random, said);
    const hz = between(400, 2200, random);
    const tone = beep(hz, between(100, 1600, random), between(-20, -6, random));
    const withBeep = joined(samples, silence(between(120, 1200, random)), tone, silence(2500));
    return {
      name: `${name}, ${Math.round(hz)} Hz for ${Math.round(lengthMs(tone))} ms`,
      samples: withBeep,
      greetingEndsAtMs: 0,
    };
  },

  async 'machine without a beep'(random, said) {
    const { name, samples } = await announcement(random, said);
    return { name, samples: joined(samples, silence(4000)), greetingEndsAtMs: 0 };
  },

  async beep(random) {
    const hz = between(560, 2500, random);
    const ms = between(100, 1800, random);
    const before = silence(between(200, 3000, random));
    const samples = joined(before, beep(hz, ms, between(-20, -6, random)), silence(3000));
    return { name: `${Math.round(hz)} Hz for ${Math.round(ms)} ms`, samples, greetingEndsAtMs: 0 };
  },

  async fax(random) {
    if (random() < 0.4) return { name: 'answering tone', samples: answeringTone(random), greetingEndsAtMs: 0 };
    const hz = between(1065, 1135, random);
    const tone = (): Int16Array => beep(hz, between(430, 570, random), -14);
    const rest = (): Int16Array => silence(between(2600, 3400, random));
    const start = Math.floor(random() * 4000 * 8);
    const samples = joined(tone(), rest(), tone(), rest(), tone()).subarray(start % (8 * 3500));
    return { name: `calling tone, ${Math.round(hz)} Hz`, samples: joined(samples, silence(4000)), greetingEndsAtMs: 0 };
  },

  async unknown(random) {
    const sounds = {
      ...SIGNALLING,
      ...NOISES,
      'held chords': MUSIC['held chords']!,
      'organ melody': MUSIC['organ melody']!,
    };
    const name = pick(
      Object.keys(sounds).filter((sound) => !/fax|beep|digits|bursts/.test(sound)),
      random,
    );
    const wide = sounds[name as keyof typeof sounds]({
      durationMs: 11_000,
      levelDbfs: between(-25, -6, random),
      seed: 1,
    });
    return { name, samples: atTelephoneRate(wide), greetingEndsAtMs: 0 };
  },
};

async function announcement(random: Random, { sentences, speakers }: { sentences: Sentences; speakers: Speakers }) {
  const voice = pick(sentences.voices, random);
  const texts = pick(sentences.machine, random);
  const speed = between(0.8, 1.25, random);
  const parts: Int16Array[] = [silence(between(100, 2500, random))];
  for (const text of texts) parts.push(await speakers.say(text, voice, speed), silence(between(150, 650, random)));
  return { name: `${texts[0]} (${voice})`, samples: joined(...parts.slice(0, -1)) };
}

/** 2100 Hz with a phase reversal every 450 ms (ITU-T V.8; ANSam is modulated as well). */
function answeringTone(random: Random): Int16Array {
  const isModulated = random() < 0.5;
  const startMs = between(100, 1500, random);
  const tone = Int16Array.from({ length: 8 * 3300 }, (_, i) => {
    const turn = Math.floor(i / (8 * 450)) % 2 === 0 ? 1 : -1;
    const level = isModulated ? 1 + 0.2 * Math.sin((2 * Math.PI * 15 * i) / 8000) : 1;
    return Math.round(6000 * turn * level * Math.sin((2 * Math.PI * 2100 * i) / 8000));
  });
  return joined(silence(startMs), tone, silence(2000));
}

function between(least: number, most: number, random: Random): number {
  return least + random() * (most - least);
}

function pick<T>(from: readonly T[], random: Random): T {
  return from[Math.floor(random() * from.length)]!;
}

export function atTelephoneRate(wide: Int16Array): Int16Array<ArrayBuffer> {
  return Int16Array.from({ length: wide.length >> 1 }, (_, i) => (wide[2 * i]! + wide[2 * i + 1]!) / 2);
}
