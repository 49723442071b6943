import { expect, it } from 'vitest';
import { inStreamTime } from '../../../speech/recognition/conclude-utterance.ts';
import { Utterance } from '../../../speech/recognition/utterance.ts';

it('keeps words in order and inside the utterance for any engine times', () => {
  const utterance = new Utterance({ utteranceId: 1, channel: 0, startMs: 5000 });
  utterance.append(new Int16Array(16_000));
  const times = [
    [0, 200],
    [-300, -100],
    [400, 350],
    [100, 600],
    [900, 4000],
    [9000, 9500],
  ];
  const words = times.map(([startMs, endMs]) => word(startMs!, endMs!));
  expect(inStreamTime(words, utterance).map(({ startMs, endMs }) => [startMs, endMs])).toEqual([
    [5000, 5200],
    [5000, 5000],
    [5400, 5400],
    [5400, 5600],
    [5900, 6000],
    [6000, 6000],
  ]);
});

function word(startMs: number, endMs: number) {
  return { word: 'word', startMs, endMs, confidence: null, speaker: null, original: null };
}
