import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LiveSpeech, LiveSpeechListener } from '../../actors/tts/tts-desk.ts';
import type { VoiceDesk } from '../../actors/voices/voice-desk.ts';
import { readScript } from '../../speech/text/read-script.ts';
import { USUAL_STYLE } from '../../speech/voices/voice-recipe.ts';
import { eventually } from '../eventually.ts';
import { FakeTtsDesk } from '../http/fake-tts-desk.ts';
import { createTtsDeskFixture, HINDI, part, type TtsDeskFixture } from './tts-desk-fixture.ts';

let fixture: TtsDeskFixture;
beforeAll(async () => {
  fixture = await createTtsDeskFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());

const STYLE = { voiceId: 'hi', style: USUAL_STYLE };
const FORMAT = { encoding: 'LINEAR16', sampleRateHz: 8000 } as const;

function listenerOf(listener: Partial<LiveSpeechListener>): LiveSpeechListener {
  return { onAudio: async () => {}, onWords() {}, onCharge() {}, onFlushed() {}, onCleared() {}, ...listener };
}

/** Returns the clauses of each synthesis request, and their charged characters. */
async function spoken(...pieces: string[]): Promise<{ said: string[][]; characters: number[] }> {
  const said: string[][] = [];
  const characters: number[] = [];
  const { desk } = fixture.deskOf(
    async function* (_, { script }) {
      said.push(script.clauses.map(({ words }) => words.map(({ written }) => written).join(' ')));
      yield part('x');
    },
    { readScript, voices: { resolve: async () => ({ id: 'hi', recipe: { ...HINDI, language: 'en-us' } }) } },
  );
  const { workspaceId, userId, apiKeyId } = fixture.request;
  const listener = listenerOf({ onCharge: (charged) => characters.push(charged.characters) });
  const speech = await desk.openLive({ workspaceId, userId, apiKeyId, ...STYLE, format: FORMAT, listener });
  for (const piece of pieces) speech.say(piece);
  speech.finish();
  await speech.ended;
  await desk.close();
  return { said, characters };
}

describe('text that comes in pieces', () => {
  it('costs as many characters as it has in a script without spaces', async () => {
    const { said, characters } = await spoken('今天天', '气很好。明天下', '雨。今晚冷。', '再见');
    expect(said.flat().map((clause) => clause.replaceAll(' ', ''))).toEqual([
      ...['今天天气很好。', '明天下雨。', '今晚冷。', '再见'],
    ]);
    expect(characters.reduce((sum, count) => sum + count, 0)).toBe('今天天气很好。明天下雨。今晚冷。再见'.length);
  });

  it('goes on after an abbreviation', async () => {
    const { said } = await spoken('Ask ', 'Dr. ', 'Rao. ', 'It is ', '5 ', 'p.m. ', 'Go now.');
    expect(said.flat()).toEqual(['Ask Dr. Rao.', 'It is 5 p.m.', 'Go now.']);
  });

  it('goes on from a time to its zone', async () => {
    const { said } = await spoken('Call ', 'at ', '8 ', 'p.m. ', 'EST. ', 'It is ', '5 p.m. ', 'Go.');
    expect(said.flat()).toEqual(['Call at 8 p.m. EST.', 'It is 5 p.m.', 'Go.']);
  });

  it('goes on from a square to its unit', async () => {
    const { said } = await spoken('It ', 'has ', '1,200 ', 'sq. ', 'ft. ', 'of ', 'space. ', 'Go.');
    expect(said.flat()).toEqual(['It has 1,200 sq. ft. of space.', 'Go.']);
  });

  it('goes on from an abbreviation to its number', async () => {
    const { said } = await spoken('Take ', 'No. ', '5 ', 'on ', 'Nov. ', '7. ', 'I said no. ', 'It is ', 'so. ', 'Go.');
    expect(said.flat()).toEqual(['Take No. 5 on Nov. 7.', 'I said no.', 'It is so.', 'Go.']);
  });

  it('goes on from a house number to its street', async () => {
    const { said } = await spoken(
      'Go ',
      'to ',
      '350 ',
      'W. ',
      'Old ',
      'Oak ',
      'Street ',
      'today. ',
      'It ',
      'is ',
      'near.',
    );
    expect(said.flat()).toEqual(['Go to 350 W. Old Oak Street today.', 'It is near.']);
  });

  it('speaks watts once no street can follow', async () => {
    const { said } = await spoken('It ', 'needs ', '60 W. ', 'Then ', 'it ', 'stops. ', 'We used 5 W. ');
    expect(said).toEqual([['It needs 60 W.'], ['Then it stops.'], ['We used 5 W.']]);
  });

  it('speaks no comment before SSML', async () => {
    for (const pieces of [
      ['<!-- Say this. ', '-->', ' <spe', 'ak>one</speak>'],
      ['<!-- One. --><!-- Two. ', '--> ', '<speak>one</speak>'],
    ]) {
      await expect(spoken(...pieces)).rejects.toMatchObject({ code: 'INVALID_SSML' });
    }
    const { said } = await spoken('<!-- One. ', '--> <b', '> two. ', 'Three. ');
    expect(said.length).toBeGreaterThan(1);
    expect(said.flat().join(' ')).toBe('<!-- One. --> <b> two. Three.');
  });

  it('keeps the groups of a telephone number together', async () => {
    const { said } = await spoken('Our office in town takes calls on ', '(415) ', '555 ', '26', '71 ', 'all day long.');
    expect(said.flat().filter((clause) => /\d/.test(clause))).toEqual([expect.stringContaining('(415) 555 2671')]);
  });

  it.each([
    ['Questions about your new contract are answered on phone 030 123 456 every day.', 'phone 030 123 456'],
    ["Tomorrow your parcel arrives at your neighbour's house at 1800 hours on the dot.", 'at 1800 hours'],
    ['Your one-time code: 482-913 works until noon.', 'code: 482-913'],
    ['Your next visit is on Tue, 12/1 at noon.', 'Tue, 12/1'],
    ['Go, now please enter the OTP 482-913 of today for all of it and then wait for a while.', 'OTP 482-913'],
    ['Go, nice and little app has by far been used 10m people who all like it very much.', '10m people'],
    ['Our grandparents spent all of their long holidays in St. Petersburg on the coast.', 'St. Petersburg'],
  ])('keeps a number and an abbreviation with the words around it: %s', async (text, unit) => {
    const { said } = await spoken(...text.match(/\S+\s*/g)!);
    const requests = said.map((clauses) => clauses.join(' '));
    expect(requests).toContainEqual(expect.stringContaining(unit));
    expect(requests.join(' ')).toBe(text);
  });

  it('speaks an item of a list when the next begins', async () => {
    const { said } = await spoken('We ', 'have:\n', '- eggs\n', '- 5 ', 'l milk\n', '* size ', '10\n', '- bread\n');
    expect(said).toEqual([['We have:'], ['- eggs'], ['- 5 l milk'], ['* size 10'], ['- bread']]);
  });

  it('speaks a long row of numbers before it ends', async () => {
    const { said } = await spoken(...Array.from({ length: 200 }, (_, number) => `${number + 100} `));
    expect(said.length).toBeGreaterThan(1);
  });

  it('speaks clauses with digits as they come in a script without spaces', async () => {
    const { said } = await spoken('我们公司今年有30个人，', '明年会有40个人，', '后年会有50个人。', '再见');
    expect(said.map((clauses) => clauses.join('').replaceAll(' ', ''))).toEqual([
      ...['我们公司今年有30个人，', '明年会有40个人，', '后年会有50个人。', '再见'],
    ]);
  });

  it.each([
    ['within a piece', ['Shopping list\n\nMilk and bread. ']],
    ['between two pieces', ['Shopping list\n\n', 'Milk and bread. ']],
    ['cut in two', ['Shopping list\n', '\nMilk and', ' bread. ']],
  ])('ends a sentence at an empty line, %s', async (_, pieces) => {
    const { said } = await spoken(...pieces);
    expect(said.flat()).toEqual(['Shopping list', 'Milk and bread.']);
  });
});

it('speaks a complete sentence before more text arrives', async () => {
  const said: string[] = [];
  const { desk } = fixture.deskOf(
    async function* (_, { script }) {
      said.push(script.clauses.flatMap(({ words }) => words.map(({ written }) => written)).join(' '));
      yield part('x');
    },
    { readScript, voices: { resolve: async () => ({ id: 'hi', recipe: { ...HINDI, language: 'en-us' } }) } },
  );
  const { workspaceId, userId, apiKeyId } = fixture.request;
  const request = { workspaceId, userId, apiKeyId, ...STYLE, format: FORMAT };
  const speech = await desk.openLive({ ...request, listener: listenerOf({}) });
  speech.say('Hello there. ');
  await eventually(() => expect(said).toEqual(['Hello there.']));
  speech.finish();
  await speech.ended;
  await desk.close();
});

it('chooses a voice for the first letters, not for white space and signs before them', async () => {
  const voices: Pick<VoiceDesk, 'resolve'> = {
    async resolve({ voiceId, text = '' }) {
      const language = voiceId ?? (/\p{Script=Devanagari}/u.test(text) ? 'hi' : 'en-us');
      return { id: language, recipe: { ...HINDI, language } };
    },
  };
  const spokenBy: string[] = [];
  const { desk } = fixture.deskOf(
    async function* (_, { recipe }) {
      spokenBy.push(recipe.language);
      yield part('x');
    },
    { readScript, voices },
  );
  const { workspaceId, userId, apiKeyId } = fixture.request;
  const request = { workspaceId, userId, apiKeyId, voiceId: null, style: USUAL_STYLE, format: FORMAT };
  const speech = await desk.openLive({ ...request, listener: listenerOf({}) });
  for (const piece of ['\n', '**', 'नमस्ते** दुनिया। ', 'Hello. ']) speech.say(piece);
  speech.finish();
  await speech.ended;
  await desk.close();
  expect(spokenBy).toEqual(['hi', 'hi']);
});

it('counts audio that was sent before the text was cleared in the times of later words', async () => {
  const starts: number[] = [];
  let speech: LiveSpeech | null = null;
  let hasCleared = false;
  const listener = listenerOf({
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
  const owner = { workspaceId: 'workspace', userId: 1, apiKeyId: null };
  speech = await new FakeTtsDesk().openLive({ ...owner, ...STYLE, format: FORMAT, listener });
  speech.say('One. ');
  await speech.ended;
  expect(starts).toEqual([0.25, 0.505]);
});
