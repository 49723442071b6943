import { writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { encodeMessage } from '../../../runtime/frames.ts';
import { serveRecognizer } from '../../../speech/engine-process/served-recognizer.ts';
import { RecognizerError } from '../../../speech/recognizer.ts';

/** A recognizer that echoes its inputs and misbehaves as its argument says, at start or in `finish`. */

type Misbehaviour =
  | 'exit'
  | 'abort'
  | 'hang'
  | 'garbage'
  | 'oversize'
  | 'stranger'
  | 'no-words'
  | 'throw'
  | 'bug'
  | 'none';

const MISBEHAVIOURS: Record<Misbehaviour, () => void | Promise<void>> = {
  exit: () => process.exit(3),
  abort: () => process.abort(),
  hang: () => delay(600_000),
  garbage: () => void writeSync(3, Buffer.from('\x04\0\0\0\0\0\0\0what')),
  oversize: () => void writeSync(3, Buffer.alloc(8, 0xff)),
  stranger: () => void writeSync(3, Buffer.concat(encodeMessage({ id: 999, value: 'nobody asked' }))),
  'no-words': () => {},
  throw: () => {
    throw new RecognizerError('model', 'the model is damaged');
  },
  bug: () => {
    throw new TypeError('undefined is not a function');
  },
  none: () => {},
};

serveRecognizer(async (argument) => {
  const { onLoad, onFinish } = argument as { onLoad: Misbehaviour; onFinish: Misbehaviour };
  console.log('a library prints to standard output');
  console.error('a library prints to standard error');
  await MISBEHAVIOURS[onLoad]();
  let options = '';
  let sampleCount = 0;
  let sampleSum = 0;
  return {
    async begin(given) {
      options = JSON.stringify(given);
      sampleCount = 0;
      sampleSum = 0;
    },
    async write(samples) {
      sampleCount += samples.length;
      for (const sample of samples) sampleSum += sample;
    },
    hypothesis: async () => (sampleCount === 0 ? null : { text: `${sampleCount}`, words: [] }),
    async finish() {
      await MISBEHAVIOURS[onFinish]();
      return {
        text: `${options} ${sampleCount} samples of sum ${sampleSum}`,
        words: onFinish === 'no-words' ? (null as never) : [],
        language: 'en',
        languageProbability: null,
        confidence: null,
        model: 'scripted',
      };
    },
    cancel: async () => {},
    close: async () => {},
  };
});
