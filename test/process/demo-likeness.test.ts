import { expect, it } from 'vitest';
import { conversationOf, MOST_SENTENCES } from '../../bin/demo/conversation.ts';
import { FOREIGN_LIKENESS, likenessOf, SAME_LIKENESS, wordsUnderstood } from '../../bin/demo/likeness.ts';

const conversation = conversationOf(MOST_SENTENCES);

it('the demo contains the requested number of sentences', () => {
  expect(conversation.sentences).toHaveLength(MOST_SENTENCES);
});

it("each sentence of the demo is recognised in its speaker's audio, even with a lost packet", () => {
  for (const { speaker, samples, startMs } of conversation.sentences) {
    const received = conversation.trackOf(speaker, { leadMs: 1_234 });
    expect(likenessOf(received, samples)).toBeCloseTo(1, 6);
    const at = (1_234 + startMs) * 8 + samples.length / 2;
    received.fill(0, at, at + 160);
    expect(likenessOf(received, samples)).toBeGreaterThan(SAME_LIKENESS);
  }
});

it('no sentence of the demo is recognised in other audio, silence or a fragment', () => {
  for (const { speaker, samples } of conversation.sentences) {
    const other = conversation.trackOf(speaker === 'agent' ? 'customer' : 'agent', { leadMs: 0 });
    expect(likenessOf(other, samples)).toBeLessThan(FOREIGN_LIKENESS);
    expect(likenessOf(new Int16Array(40_000), samples)).toBe(0);
    expect(likenessOf(new Int16Array(0), samples)).toBe(0);
    expect(likenessOf(samples.subarray(0, samples.length / 4), samples)).toBeLessThan(SAME_LIKENESS);
  }
});

it("the demo's speakers never overlap", () => {
  const [agent, customer] = (['agent', 'customer'] as const).map((leg) => conversation.trackOf(leg, { leadMs: 0 }));
  expect(agent!.some((sample, at) => sample !== 0 && customer![at] !== 0)).toBe(false);
});

it('words count as understood in their order, with any words between them', () => {
  expect(wordsUnderstood('go forward ten meters', 'Go forward, and ten meters!')).toEqual({ words: 4, understood: 4 });
  expect(wordsUnderstood('go forward ten meters', 'meters ten forward go')).toEqual({ words: 4, understood: 1 });
  expect(wordsUnderstood('five five', 'five')).toEqual({ words: 2, understood: 1 });
  expect(wordsUnderstood('five five', '')).toEqual({ words: 2, understood: 0 });
});
