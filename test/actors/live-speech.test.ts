import { expect, it } from 'vitest';
import type { LiveSpeech, LiveSpeechListener } from '../../actors/tts/tts-desk.ts';
import { USUAL_STYLE } from '../../speech/voices/voice-recipe.ts';
import { FakeTtsDesk } from '../http/fake-tts-desk.ts';

/** Says texts of two chunks: 250 ms, then 125 ms. */
async function open(listener: Partial<LiveSpeechListener>): Promise<LiveSpeech> {
  return await new FakeTtsDesk().openLive({
    ...{ workspaceId: 'workspace', userId: 1, apiKeyId: null, voiceId: 'hi', style: USUAL_STYLE },
    format: { encoding: 'LINEAR16', sampleRateHz: 8000 },
    listener: { onAudio: async () => {}, onWords() {}, onCharge() {}, onFlushed() {}, onCleared() {}, ...listener },
  });
}

it('counts audio that was sent before the text was cleared in the times of later words', async () => {
  const starts: number[] = [];
  let speech: LiveSpeech | null = null;
  let hasCleared = false;
  speech = await open({
    async onAudio() {
      if (hasCleared) return;
      hasCleared = true;
      // The client interrupts while the first chunk is on its way.
      speech!.clear();
      speech!.say('Two.');
      speech!.finish();
    },
    onWords: (words) => starts.push(...words.map(({ start }) => start)),
  });
  speech.say('One. ');
  await speech.ended;
  expect(starts).toEqual([0.25, 0.505]);
});
