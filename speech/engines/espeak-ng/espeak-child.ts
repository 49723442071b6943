import load from '@echogarden/espeak-ng-emscripten';
import { AnswerWithBytes, serveEngine } from '../../engine-process/engine-child.ts';
import { MOST_BODY_BYTES } from '../../engine-process/frames.ts';
import { encodeSpeech } from '../../synthesis/encode-speech.ts';
import { SynthesizerError } from '../../synthesizer.ts';
import { alignWords } from './align-words.ts';
import { type Asked, ClauseArgument } from './espeak-calls.ts';

/** eSpeak NG in a process of its own: its licence (GPL-3) stays there, a program spoken to over a pipe. */

/** A clause that takes longer is no clause: its caller asks for parts of it. */
const MOST_CLAUSE_MS = 120_000;

/**
 * What is only text to us: it reads SSML whether one wants it or not, takes a control character for the start of a
 * command, which would hold for whoever is spoken for next, and stops at NUL.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are meant
const MARKUP = /[<>\u0000-\u001f\u007f-\u009f]/g;

serveEngine(async () => {
  const { eSpeakNGWorker } = await load();
  const espeak = new eSpeakNGWorker();
  const sampleRateHz = espeak.get_samplerate();
  let rest: Buffer = Buffer.alloc(0);

  /** As much of what was spoken as one answer holds. */
  function nextBytes(): Buffer {
    const bytes = rest.subarray(0, MOST_BODY_BYTES);
    rest = rest.subarray(MOST_BODY_BYTES);
    return bytes;
  }

  function speak({ text, voice, wordsPerMinute, format }: Asked) {
    if (espeak.set_voice(voice) !== 0) throw new SynthesizerError('unknown_voice', `eSpeak NG has no voice ${voice}`);
    espeak.set_rate(Math.min(450, Math.max(80, Math.round(wordsPerMinute))));
    const blocks: Int16Array[] = [];
    const marks: { position: number; atMs: number }[] = [];
    let samples = 0;
    const mostSamples = (MOST_CLAUSE_MS / 1000) * sampleRateHz;
    espeak.synthesize(text.replace(MARKUP, ' '), (block, events) => {
      for (const { type, text_position: position, audio_position: atMs } of events) {
        if (type === 'word') marks.push({ position: position - 1, atMs });
      }
      blocks.push(block);
      samples += block.length;
      return samples > mostSamples;
    });
    if (samples > mostSamples) throw new SynthesizerError('too_long', 'a clause that takes minutes');
    const durationMs = (samples * 1000) / sampleRateHz;
    rest = encodeSpeech(blocks, { sampleRateHz, format });
    return {
      durationMs,
      bytes: rest.byteLength,
      words: alignWords(text, { marks, durationMs }).map((word) => ({ ...word })),
    };
  }

  return {
    speak(argument) {
      if (!ClauseArgument.Check(argument)) throw new TypeError('not a clause');
      const spoken = speak(argument);
      return new AnswerWithBytes(spoken, nextBytes());
    },
    more: () => new AnswerWithBytes(null, nextBytes()),
  };
});
