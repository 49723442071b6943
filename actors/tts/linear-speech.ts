import type { SpeakRequest, SpeechSynthesis } from '../../speech/speech-synthesis.ts';
import { USUAL_STYLE } from '../../speech/voices/voice-recipe.ts';

const CALL_RATE_HZ = 16_000;

/**
 * Synthesises a text for a call: linear, 16 kHz, mono. Cuts audio longer than `longestMs`; empty if the engine produces
 * none. @throws SynthesizerError; the signal's reason
 */
export async function speakLinear(
  { script, recipe, voices }: Pick<SpeakRequest, 'script' | 'recipe' | 'voices'>,
  {
    synthesis,
    longestMs,
    signal,
  }: { synthesis: Pick<SpeechSynthesis, 'speak'>; longestMs: number; signal: AbortSignal },
): Promise<Int16Array<ArrayBuffer>> {
  const format = { encoding: 'LINEAR16', sampleRateHz: CALL_RATE_HZ } as const;
  const request = { script, recipe, ...(voices && { voices }), style: USUAL_STYLE, format };
  const mostBytes = (longestMs / 1_000) * CALL_RATE_HZ * Int16Array.BYTES_PER_ELEMENT;
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const { audio } of synthesis.speak(request, signal)) {
    parts.push(audio);
    bytes += audio.byteLength;
    if (bytes >= mostBytes) break;
  }
  const all = new Uint8Array(Math.min(bytes, mostBytes) & ~1);
  let offset = 0;
  for (const part of parts) {
    all.set(part.subarray(0, all.length - offset), offset);
    offset += part.length;
  }
  return new Int16Array(all.buffer);
}
