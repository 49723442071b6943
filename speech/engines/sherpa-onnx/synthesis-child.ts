import sherpa, { type GeneratedPart } from 'sherpa-onnx-node';
import { FRAME_LIMITS } from '../../../runtime/frames.ts';
import { AnswerWithBytes, type EngineCalls, serveEngine } from '../../engine-process/engine-child.ts';
import { SynthesizerError } from '../../synthesizer.ts';
import { readReference } from './reference-wav.ts';
import { type SpeakArgument, SpeakCall } from './synthesis-calls.ts';

/** sherpa-onnx, which ends its process over whatever it does not like, with a synthesis model. */

/** A clause that takes longer is no clause: its caller asks for parts of it. */
const LONGEST_CLAUSE_S = 300;
/** The same text sounds the same again, where a model draws lots. */
const SEED = 1;
/** How it says that it found nothing to say in a text. */
const NOTHING_SAID = 'TTS generation produced no audio';

// The argument is of our own engine: nobody else starts this process.
serveEngine((argument): EngineCalls => {
  const tts = new sherpa.OfflineTts(argument as object);
  const mostSamples = LONGEST_CLAUSE_S * tts.sampleRate;

  async function speak(asked: SpeakArgument, tell: (part: AnswerWithBytes) => void): Promise<void> {
    const { text, sid, speed } = asked;
    const reference = asked.reference === null ? null : await readReference(asked.reference.path);
    let told = 0;
    let isOver = false;
    const tellMore = (samples: Float32Array): void => {
      if (isOver) return;
      told += samples.length;
      for (const part of partsOf(samples)) tell(part);
    };
    const { samples } = await tts
      .generateAsync({
        text,
        // Memory of the addon cannot be handed out of it under every build of Node.
        enableExternalBuffer: false,
        generationConfig: {
          ...{ sid, speed, silenceScale: 1, extra: { seed: SEED } },
          ...(reference !== null && {
            referenceAudio: reference.samples,
            referenceSampleRate: reference.sampleRateHz,
            referenceText: asked.reference!.text,
          }),
        },
        onProgress({ samples }: GeneratedPart) {
          if (told + samples.length > mostSamples) return false;
          tellMore(samples);
          return true;
        },
      })
      .catch((error: unknown) => {
        if (error instanceof Error && error.message === NOTHING_SAID) return { samples: new Float32Array(0) };
        throw error;
      });
    if (samples.length > mostSamples) throw new SynthesizerError('too_long', 'a clause that takes minutes');
    // Not all kinds of models tell what they have so far.
    tellMore(samples.subarray(Math.min(told, samples.length)));
    isOver = true;
  }

  return {
    describe: () => ({ sampleRateHz: tts.sampleRate, speakers: tts.numSpeakers }),
    async speak(asked, _, tell) {
      if (!SpeakCall.matches(asked)) throw new TypeError('not a clause');
      await speak(asked, tell);
      return null;
    },
  };
});

const PART_SAMPLES = FRAME_LIMITS.bodyBytes / Int16Array.BYTES_PER_ELEMENT;

function* partsOf(samples: Float32Array): Generator<AnswerWithBytes> {
  for (let start = 0; start < samples.length; start += PART_SAMPLES) {
    const part = new Int16Array(Math.min(PART_SAMPLES, samples.length - start));
    // What is no number becomes 0.
    for (let at = 0; at < part.length; at++) {
      part[at] = Math.max(-32_768, Math.min(32_767, Math.round(samples[start + at]! * 32_768)));
    }
    yield new AnswerWithBytes(null, new Uint8Array(part.buffer));
  }
}
