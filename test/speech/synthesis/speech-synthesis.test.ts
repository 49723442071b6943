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

  it('goes on in a new process when those that were idle are dead', async () => {
    const { synthesis, killAll } = speaking({ processes: 3 });
    await Promise.all(Array.from({ length: 3 }, () => said(synthesis.speak({ ...REQUEST, text: 'Hello.' }, open()))));
    killAll();
    expect(await said(synthesis.speak({ ...REQUEST, text: TEXT }, open()))).toHaveLength(4);
  });

  it('is spoken in parts where a clause takes the engine too long, and none of it is lost', async () => {
    const { synthesis } = speaking({ longestText: 12 });
    const text = `one two three four five six, ${'😀'.repeat(20)} end.`;
    const parts = await said(synthesis.speak({ ...REQUEST, text }, open()));
    expect(Math.max(...parts.map((part) => part.length))).toBeLessThanOrEqual(12);
    expect(parts.join('').replaceAll(' ', '')).toBe(text.replaceAll(' ', ''));
  });

  it('fails where a single character takes too long', async () => {
    const { synthesis } = speaking({ longestText: 0 });
    await expect(said(synthesis.speak({ ...REQUEST, text: 'ab' }, open()))).rejects.toMatchObject({ code: 'too_long' });
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

  it('are spoken by turns, however fast one of them is listened to', async () => {
    const { synthesis, asked } = speaking({ processes: 1 });
    await Promise.all([
      said(synthesis.speak({ ...REQUEST, text: 'a1. a2. a3. a4. a5.' }, open())),
      said(synthesis.speak({ ...REQUEST, text: 'b1. b2. b3.' }, open())),
    ]);
    expect(asked).toEqual(['a1.', 'b1.', 'a2.', 'b2.', 'a3.', 'b3.', 'a4.', 'a5.']);
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
  longestText = Number.POSITIVE_INFINITY,
}: {
  processes?: number;
  longestText?: number;
  dyingAt?: string[];
  unknownVoice?: string | null;
} = {}) {
  const toDieAt = [...dyingAt];
  const asked: string[] = [];
  let [started, closed, running, mostAtOnce, killed] = [0, 0, 0, 0, 0];
  const start = async (): Promise<Synthesizer> => {
    const number = ++started;
    return {
      async speak({ text, voice }: Clause) {
        asked.push(text);
        running += 1;
        mostAtOnce = Math.max(mostAtOnce, running);
        await settled();
        running -= 1;
        if (number <= killed) throw new SynthesizerError('crashed', 'died');
        if (text.length > longestText) throw new SynthesizerError('too_long', 'minutes');
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
  const killAll = () => {
    killed = started;
  };
  return { synthesis, asked, killAll, started: () => started, closed: () => closed, mostAtOnce: () => mostAtOnce };
}
