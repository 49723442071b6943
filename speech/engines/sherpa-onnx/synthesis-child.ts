import sherpa, { type GeneratedPart } from 'sherpa-onnx-node';
import { FRAME_LIMITS } from '../../../runtime/frames.ts';
import { AnswerWithBytes, type EngineCalls, serveEngine } from '../../engine-process/engine-child.ts';
import { SynthesizerError } from '../../synthesizer.ts';
import { readReference } from './reference-wav.ts';
import { type SpeakArgument, SpeakCall } from './synthesis-calls.ts';

/** Runs a synthesis model in a process of its own, because sherpa-onnx exits on errors. */

/** Limit of a clause. Its caller then splits it. */
const LONGEST_CLAUSE_S = 300;
/** Makes models with random sampling reproducible. */
const SEED = 1;
/** The library's message for a text without anything to say. */
const NOTHING_SAID = 'TTS generation produced no audio';

// Only our own engine starts this process, so the argument is trusted.
serveEngine((argument): EngineCalls => {
  const tts = new sherpa.OfflineTts(argument as object);
  const mostSamples = LONGEST_CLAUSE_S * tts.sampleRate;

  async function speak(asked: SpeakArgument, emit: (part: AnswerWithBytes) => void): Promise<void> {
    const { text, sid, speed } = asked;
    const reference = asked.reference === null ? null : await readReference(asked.reference.path);
    let emittedSamples = 0;
    let isOver = false;
    const emitParts = (samples: Float32Array): void => {
      if (isOver) return;
      emittedSamples += samples.length;
      for (const part of partsOf(samples)) emit(part);
    };
    const { samples } = await tts
      .generateAsync({
        text,
        // Some builds of Node forbid external buffers of addons.
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
          if (emittedSamples + samples.length > mostSamples) return false;
          emitParts(samples);
          return true;
        },
      })
      .catch((error: unknown) => {
        if (error instanceof Error && error.message === NOTHING_SAID) return { samples: new Float32Array(0) };
        throw error;
      });
    if (samples.length > mostSamples) throw new SynthesizerError('too_long', 'a clause that takes minutes');
    // Some kinds of models report no partial output.
    emitParts(samples.subarray(Math.min(emittedSamples, samples.length)));
    isOver = true;
  }

  return {
    describe: () => ({ sampleRateHz: tts.sampleRate, speakers: tts.numSpeakers }),
    async speak(asked, _, emit) {
      if (!SpeakCall.matches(asked)) throw new TypeError('not a clause');
      await speak(asked, emit);
      return null;
    },
  };
});

const PART_SAMPLES = FRAME_LIMITS.bodyBytes / Int16Array.BYTES_PER_ELEMENT;

function* partsOf(samples: Float32Array): Generator<AnswerWithBytes> {
  for (let start = 0; start < samples.length; start += PART_SAMPLES) {
    const part = new Int16Array(Math.min(PART_SAMPLES, samples.length - start));
    // NaN becomes 0.
    for (let at = 0; at < part.length; at++) {
      part[at] = Math.max(-32_768, Math.min(32_767, Math.round(samples[start + at]! * 32_768)));
    }
    yield new AnswerWithBytes(null, new Uint8Array(part.buffer));
  }
}
