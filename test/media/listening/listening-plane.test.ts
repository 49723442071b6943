import { describe, expect, it } from 'vitest';
import { createListeningPlane } from '../../../media/listening/listening-pool.ts';
import { asMulaw8k, spokenUtterances } from '../../speech/spoken.ts';
import { joined, listenLive, silence, writeInFrames } from './heard.ts';

const spoken = new Map(spokenUtterances().map((utterance) => [utterance.name, utterance]));
const sentence = spoken.get('librivox-0880')!.samples;
const command = spoken.get('goforward')!.samples;

describe('the listening plane', () => {
  it('hears utterances in a telephone stream and posts each with its audio, times and signal to noise ratio', async () => {
    const plane = createListeningPlane({ workers: 1 });
    const { session, recogniser, untilEvent } = await listenLive(plane);
    writeInFrames(session, asMulaw8k(joined(silence(1000), sentence, silence(2000), command, silence(300))));
    await untilEvent('speech.started');
    expect(await session.finish()).toMatchObject({ durationMs: expect.closeTo(9076, 0) });
    await recogniser.until(({ isEnded }) => isEnded);
    expect(recogniser.utterances.map(({ outcome }) => outcome)).toEqual(['end', 'end']);
    await recogniser.closed;
    expect(plane.capacity()).toEqual({ sessions: 0, workers: 1 });
    await plane.close();
  });
});
