import { describe, expect, it } from 'vitest';
import type { UtteranceMessage } from '../../../machines/utterances.ts';
import { chunkRules, liveRules, type SegmentationRules } from '../../../media/listening/segmentation-rules.ts';
import { UtteranceSegmenter } from '../../../media/listening/utterance-segmenter.ts';
import { WINDOW_MS, WINDOW_SAMPLES, type WindowKind } from '../../../media/listening/windows.ts';

/** Feeds numbered windows and collects the resulting utterances. */
class Segmentation {
  readonly segmenter: UtteranceSegmenter;
  readonly messages: UtteranceMessage[] = [];
  readonly started: { utteranceId: number; atMs: number }[] = [];
  #windows = 0;
  #utteranceId = 0;

  constructor(rules: SegmentationRules) {
    this.segmenter = new UtteranceSegmenter({
      channel: 0,
      rules,
      nextUtteranceId: () => this.#utteranceId++,
      post: (message) => this.messages.push(message),
      onSpeechStarted: (utteranceId, atMs) => this.started.push({ utteranceId, atMs }),
    });
  }

  /** Adds windows of a kind; speech is 40 dB above the background by default. */
  add(kind: WindowKind, windows: number, power = kind === 'background' ? 100 : 1_000_000): this {
    for (let i = 0; i < windows; i++) {
      this.segmenter.add(new Int16Array(WINDOW_SAMPLES).fill(this.#windows++), power, kind);
    }
    return this;
  }

  finish(): this {
    this.segmenter.finish(this.#windows * WINDOW_MS);
    return this;
  }

  /** How many windows of an utterance were posted before each of its pauses. */
  pauses(utteranceId = 0): number[] {
    let windows = 0;
    return this.messages.flatMap((message) => {
      if (!('utteranceId' in message) || message.utteranceId !== utteranceId) return [];
      if (message.type === 'utterance.audio') windows += message.samples.length / WINDOW_SAMPLES;
      return message.type === 'utterance.pause' ? [windows] : [];
    });
  }

  utterances() {
    return this.messages
      .filter((message) => message.type === 'utterance.begin')
      .map(({ utteranceId, startMs }) => {
        const blocks = this.messages.flatMap((message) =>
          message.type === 'utterance.audio' && message.utteranceId === utteranceId ? [message.samples] : [],
        );
        const windows = blocks.flatMap((block) =>
          Array.from({ length: block.length / WINDOW_SAMPLES }, (_, i) => block[i * WINDOW_SAMPLES]!),
        );
        expect(windows).toEqual(windows.map((_, i) => startMs / WINDOW_MS + i));
        expect(Math.max(0, ...blocks.map((block) => block.length))).toBeLessThanOrEqual(3 * WINDOW_SAMPLES);
        const end = this.messages.find(
          (message) =>
            (message.type === 'utterance.end' || message.type === 'utterance.discard') &&
            message.utteranceId === utteranceId,
        );
        const summary = end !== undefined && 'summary' in end ? end.summary : null;
        const outcome = end === undefined ? 'open' : end.type === 'utterance.discard' ? end.reason : 'end';
        return { first: windows[0], last: windows.at(-1), summary, outcome };
      });
  }
}

const PAUSE = Math.ceil(1000 / WINDOW_MS);
/** Windows of a pause that are posted before it is known whether speech goes on. */
const POST_ROLL = 7;

describe('live stream segmentation', () => {
  it('begins before detected speech and ends after the pause, with little of it', () => {
    const segmentation = new Segmentation(liveRules(1000)).add('background', 50).add('speech', 40);
    expect(segmentation.started).toEqual([{ utteranceId: 0, atMs: 50 * WINDOW_MS }]);
    segmentation.add('background', PAUSE);
    const [utterance] = segmentation.utterances();
    expect(utterance).toMatchObject({ first: 40, last: 96, outcome: 'end' });
    expect(utterance!.summary).toMatchObject({
      channel: 0,
      startMs: 40 * WINDOW_MS,
      endMs: 90 * WINDOW_MS,
      speechMs: 40 * WINDOW_MS,
      snrDb: expect.closeTo(40, 0),
    });
  });

  it('ends on demand, and begins again with the next speech', () => {
    const segmentation = new Segmentation(liveRules(1000)).add('background', 50).add('speech', 40);
    segmentation.segmenter.endUtterance();
    expect(segmentation.utterances()).toMatchObject([{ first: 40, last: 89, outcome: 'end' }]);
    expect(segmentation.utterances()[0]!.summary).toMatchObject({ endMs: 90 * WINDOW_MS, speechMs: 40 * WINDOW_MS });
    segmentation.segmenter.endUtterance();
    segmentation.add('speech', 30).add('background', 5);
    segmentation.segmenter.endUtterance();
    expect(segmentation.utterances()).toMatchObject([
      { first: 40, last: 89, outcome: 'end' },
      { first: 90, last: 124, outcome: 'end' },
    ]);
    segmentation.add('background', PAUSE).segmenter.endUtterance();
    expect(segmentation.utterances()).toHaveLength(2);
  });

  it('includes a shorter pause', () => {
    const segmentation = new Segmentation(liveRules(1000))
      .add('background', 20)
      .add('speech', 20)
      .add('background', PAUSE - 3)
      .add('speech', 20)
      .add('background', PAUSE);
    expect(segmentation.utterances()).toMatchObject([
      { first: 10, last: 20 + 20 + (PAUSE - 3) + 20 + 7 - 1, outcome: 'end' },
    ]);
    expect(segmentation.utterances()[0]!.summary!.speechMs).toBe(40 * WINDOW_MS);
  });

  it('withholds a pause until speech continues', () => {
    const segmentation = new Segmentation(liveRules(1000)).add('speech', 30).add('background', 25);
    expect(segmentation.utterances()[0]!.last).toBeLessThan(30 + 8);
    segmentation.add('speech', 3);
    expect(segmentation.utterances()[0]!.last).toBeGreaterThan(54);
  });

  it('posts a pause that probably ends the utterance, once, after the audio before it', () => {
    const segmentation = new Segmentation(liveRules(1000)).add('speech', 31).add('background', 10);
    expect(segmentation.pauses()).toEqual([]);
    segmentation.add('background', 1);
    expect(segmentation.pauses()).toEqual([31 + POST_ROLL]);
    segmentation.add('background', PAUSE - 14);
    expect(segmentation.pauses()).toHaveLength(1);
    segmentation.add('speech', 30).add('background', PAUSE);
    expect(segmentation.pauses()).toEqual([31 + POST_ROLL, 31 + (PAUSE - 3) + 30 + POST_ROLL]);
    expect(segmentation.utterances()).toMatchObject([{ outcome: 'end' }]);
  });

  it('posts a short pause, too, after a long time without another', () => {
    const segmentation = new Segmentation(liveRules(1000)).add('speech', 100).add('background', 9);
    segmentation.add('speech', 100).add('background', 9);
    const first = 100 + 9 + 100 + POST_ROLL;
    expect(segmentation.pauses()).toEqual([first]);
    segmentation.add('speech', 100).add('background', 9).add('speech', 10);
    expect(segmentation.pauses()).toEqual([first]);
  });

  it('posts no pause that ends the utterance at once, and none where speech goes on as the next one', () => {
    const brief = new Segmentation(liveRules(300)).add('speech', 30).add('background', PAUSE);
    expect(brief.utterances()).toMatchObject([{ outcome: 'end' }]);
    expect(brief.pauses()).toEqual([]);
    const long = new Segmentation(liveRules(1000)).add('speech', 890).add('background', 12).add('speech', 100);
    expect(long.utterances()).toMatchObject([{ outcome: 'end' }, { outcome: 'open' }]);
    expect(long.pauses()).toEqual([]);
  });

  it('assigns no window to two utterances', () => {
    const segmentation = new Segmentation(liveRules(200));
    for (let i = 0; i < 5; i++) segmentation.add('speech', 10).add('background', 8);
    const utterances = segmentation.finish().utterances();
    expect(utterances).toHaveLength(5);
    for (let i = 1; i < 5; i++) expect(utterances[i]!.first).toBeGreaterThan(utterances[i - 1]!.last!);
  });

  it('ignores clicks', () => {
    const segmentation = new Segmentation(liveRules(1000));
    for (let i = 0; i < 10; i++) segmentation.add('background', 10).add('speech', 2);
    expect(segmentation.finish().messages).toEqual([]);
  });

  it('discards speech that is shorter than a word', () => {
    const segmentation = new Segmentation(liveRules(1000)).add('background', 20).add('speech', 3);
    segmentation.add('background', PAUSE);
    expect(segmentation.utterances()).toMatchObject([{ outcome: 'speech_end_too_short' }]);
    expect(segmentation.segmenter.utterances).toBe(0);
  });

  it('discards speech that is quieter than the background', () => {
    const segmentation = new Segmentation(liveRules(1000)).add('background', 50).add('speech', 30, 180);
    segmentation.add('background', PAUSE);
    expect(segmentation.utterances()).toMatchObject([{ outcome: 'low_snr_dropped' }]);
    expect(segmentation.utterances()[0]!.summary!.snrDb).toBeLessThan(0);
  });

  it('ignores noise after an utterance', () => {
    const segmentation = new Segmentation(liveRules(1000)).add('background', 50).add('speech', 30);
    segmentation.add('background', 3 * PAUSE, 10_000_000);
    expect(segmentation.utterances()).toMatchObject([{ outcome: 'end', summary: { snrDb: expect.closeTo(40, 0) } }]);
  });

  it('reports no ratio without background', () => {
    const segmentation = new Segmentation(liveRules(1000)).add('speech', 30).add('tone', PAUSE);
    expect(segmentation.utterances()).toMatchObject([{ outcome: 'end', summary: { snrDb: null } }]);
  });

  it('retracts speech that turns out to be a tone', () => {
    const segmentation = new Segmentation(liveRules(1000)).add('background', 50).add('speech', 4).add('tone', PAUSE);
    expect(segmentation.utterances()).toMatchObject([{ outcome: 'speech_end_too_short', summary: { speechMs: 0 } }]);
  });

  it('splits continuous speech at its quietest point and continues there', () => {
    const quietest = 910;
    const segmentation = new Segmentation(liveRules(1000)).add('speech', quietest).add('speech', 1, 1000);
    segmentation.add('speech', 400).add('background', PAUSE);
    const utterances = segmentation.utterances();
    expect(utterances).toMatchObject([
      { first: 0, last: quietest - 1, outcome: 'end' },
      { first: quietest, outcome: 'end' },
    ]);
    expect(utterances[0]!.summary).toMatchObject({ endMs: quietest * WINDOW_MS, speechMs: quietest * WINDOW_MS });
    expect(utterances[1]!.summary!.speechMs).toBe(401 * WINDOW_MS);
  });

  it('splits at the longest pause if there is one', () => {
    const segmentation = new Segmentation(liveRules(1000)).add('speech', 890).add('background', 1).add('speech', 10);
    segmentation.add('background', 5).add('speech', 200).finish();
    const [first, second] = segmentation.utterances();
    expect(first!.summary!.endMs).toBe(901 * WINDOW_MS);
    expect(second!.first).toBeGreaterThan(901);
    expect(second!.first).toBeLessThan(906);
  });

  it('ends the open utterance with the stream', () => {
    const segmentation = new Segmentation(liveRules(1000)).add('background', 20).add('speech', 20).finish();
    expect(segmentation.utterances()).toMatchObject([{ first: 10, last: 39, outcome: 'end' }]);
    expect(segmentation.segmenter.totals()).toMatchObject({ speechWindows: 20, speechPower: 20_000_000 });
  });

  it('applies a new pause during an utterance, and extends its buffer', () => {
    const segmentation = new Segmentation(liveRules(1000)).add('speech', 20).add('background', 20);
    segmentation.segmenter.configure(liveRules(5000));
    segmentation.add('background', 130).add('speech', 20);
    expect(segmentation.finish().utterances()).toMatchObject([{ first: 0, last: 189, outcome: 'end' }]);
  });
});

describe('file segmentation into chunks', () => {
  it('joins utterances, including pauses, up to the chunk length', () => {
    const segmentation = new Segmentation(chunkRules(10_000));
    for (let i = 0; i < 14; i++) segmentation.add('speech', 31).add('background', 31);
    const utterances = segmentation.finish().utterances();
    expect(utterances.map(({ outcome }) => outcome)).toEqual(['end', 'end', 'end']);
    for (const { summary } of utterances.slice(0, 2)) {
      const lengthMs = summary!.endMs - summary!.startMs;
      expect(lengthMs).toBeGreaterThan(9000);
      expect(lengthMs).toBeLessThan(12_000);
    }
    expect(utterances.reduce((sum, { summary }) => sum + summary!.speechMs, 0)).toBe(14 * 31 * WINDOW_MS);
  });

  it('splits at the longest pause before twice the length', () => {
    const segmentation = new Segmentation(chunkRules(5000)).add('speech', 200).add('background', 3);
    segmentation.add('speech', 20).add('background', 8).add('speech', 100).finish();
    expect(segmentation.utterances()).toMatchObject([
      { first: 0, summary: { endMs: 223 * WINDOW_MS } },
      { first: expect.closeTo(227, -1), outcome: 'end' },
    ]);
  });

  it('posts no pauses', () => {
    const segmentation = new Segmentation(chunkRules(5000)).add('speech', 50).add('background', 20);
    expect(segmentation.add('speech', 50).finish().pauses()).toEqual([]);
  });

  it('ends a chunk after a long pause', () => {
    const segmentation = new Segmentation(chunkRules(5000)).add('speech', 50).add('background', 5000);
    segmentation.add('speech', 50).finish();
    const utterances = segmentation.utterances();
    expect(utterances).toHaveLength(2);
    expect(utterances[0]!.last).toBeLessThan(60);
    expect(utterances[1]!.first).toBeGreaterThan(5030);
  });
});
