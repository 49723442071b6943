import { describe, expect, it } from 'vitest';
import { createSpeechSynthesis } from '../../../speech/synthesis/speech-synthesis.ts';
import { type Clause, type SpokenClause, type Synthesizer, SynthesizerError } from '../../../speech/synthesizer.ts';

const REQUEST = { voice: 'v', wordsPerMinute: 137, format: { encoding: 'LINEAR16', sampleRateHz: 8000 } } as const;
const TEXT = 'One two three, four. Five six. Seven.';
const open = () => new AbortController().signal;

describe('a text', () => {
  it('is spoken clause by clause, in order', async () => {
    const { synthesis } = speaking();
    expect(await said(synthesis.speak({ ...REQUEST, text: TEXT }, open()))).toEqual([
      'One two three,',
      'four.',
      'Five six.',
      'Seven.',
    ]);
  });

  it('is made one clause ahead of its listener and no further', async () => {
    const { synthesis, asked } = speaking();
    const clauses = synthesis.speak({ ...REQUEST, text: TEXT }, open());
    await clauses.next();
    await settled();
    expect(asked).toEqual(['One two three,', 'four.']);
    await clauses.next();
    await settled();
    expect(asked).toEqual(['One two three,', 'four.', 'Five six.']);
    await clauses.return();
    await settled();
    expect(asked).toHaveLength(3);
  });

  it('goes on in another process when one dies, and loses nothing', async () => {
    const { synthesis, started } = speaking({ dyingAt: ['four.', 'Seven.'] });
    expect(await said(synthesis.speak({ ...REQUEST, text: TEXT }, open()))).toHaveLength(4);
    expect(started()).toBe(3);
  });

  it('fails when the second process dies of it too', async () => {
    const { synthesis } = speaking({ dyingAt: ['four.', 'four.'] });
    await expect(said(synthesis.speak({ ...REQUEST, text: TEXT }, open()))).rejects.toMatchObject({ code: 'crashed' });
  });

  it('does not try again with a voice that does not exist, and keeps the process', async () => {
    const { synthesis, started, asked } = speaking({ unknownVoice: 'nobody' });
    const request = { ...REQUEST, voice: 'nobody', text: 'Hello.' };
    await expect(said(synthesis.speak(request, open()))).rejects.toMatchObject({ code: 'unknown_voice' });
    expect(await said(synthesis.speak({ ...REQUEST, text: 'Hello.' }, open()))).toEqual(['Hello.']);
    expect({ started: started(), asked: asked.length }).toEqual({ started: 1, asked: 2 });
  });

  it('stops with its signal', async () => {
    const { synthesis, asked } = speaking();
    const abort = new AbortController();
    const clauses = synthesis.speak({ ...REQUEST, text: TEXT }, abort.signal);
    await clauses.next();
    abort.abort(new Error('left'));
    await expect(said(clauses)).rejects.toThrow('left');
    expect(asked.length).toBeLessThanOrEqual(2);
  });

  it('without a word is over at once', async () => {
    const { synthesis, started } = speaking();
    expect(await said(synthesis.speak({ ...REQUEST, text: ' \n ' }, open()))).toEqual([]);
    expect(started()).toBe(0);
  });
});

describe('many texts', () => {
  it('share so many processes as there may be, in turns', async () => {
    const { synthesis, mostAtOnce, started } = speaking({ processes: 2 });
    await Promise.all(Array.from({ length: 10 }, () => said(synthesis.speak({ ...REQUEST, text: TEXT }, open()))));
    expect({ mostAtOnce: mostAtOnce(), started: started() }).toEqual({ mostAtOnce: 2, started: 2 });
  });

  it('are not held up by one that left while it waited', async () => {
    const { synthesis } = speaking({ processes: 1 });
    const abort = new AbortController();
    const waiting = Array.from({ length: 5 }, (_, index) =>
      said(synthesis.speak({ ...REQUEST, text: TEXT }, index === 2 ? abort.signal : open())),
    );
    abort.abort(new Error('left'));
    const outcomes = await Promise.allSettled(waiting);
    expect(outcomes.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
    ]);
  });

  it('end when the synthesis is closed', async () => {
    const { synthesis, closed } = speaking({ processes: 1 });
    await said(synthesis.speak({ ...REQUEST, text: TEXT }, open()));
    await synthesis.close();
    expect(closed()).toBe(1);
    await expect(said(synthesis.speak({ ...REQUEST, text: TEXT }, open()))).rejects.toMatchObject({ code: 'crashed' });
  });
});

async function said(clauses: AsyncIterable<SpokenClause>): Promise<string[]> {
  const texts: string[] = [];
  for await (const { audio } of clauses) texts.push(audio.toString());
  return texts;
}

async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

/** Engines whose audio is the text. */
function speaking({
  processes = 2,
  dyingAt = [],
  unknownVoice = null,
}: {
  processes?: number;
  dyingAt?: string[];
  unknownVoice?: string | null;
} = {}) {
  const toDieAt = [...dyingAt];
  const asked: string[] = [];
  let [started, closed, running, mostAtOnce] = [0, 0, 0, 0];
  const start = async (): Promise<Synthesizer> => {
    started += 1;
    return {
      async speak({ text, voice }: Clause) {
        asked.push(text);
        running += 1;
        mostAtOnce = Math.max(mostAtOnce, running);
        await settled();
        running -= 1;
        if (voice === unknownVoice) throw new SynthesizerError('unknown_voice', 'no');
        const dies = toDieAt.indexOf(text);
        if (dies < 0) return { audio: Buffer.from(text), durationMs: 100, words: [] };
        toDieAt.splice(dies, 1);
        throw new SynthesizerError('crashed', 'died');
      },
      async close() {
        closed += 1;
      },
    };
  };
  const synthesis = createSpeechSynthesis({ processes, start });
  return { synthesis, asked, started: () => started, closed: () => closed, mostAtOnce: () => mostAtOnce };
}
