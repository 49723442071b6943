import { describe, expect, it } from 'vitest';
import { readScript } from '../../../speech/text/read-script.ts';
import { spokenOf } from './spoken-of.ts';

function clausesOf(text: string, language = 'en-us'): string[] {
  return readScript(text, { language }).clauses.map(({ words }) => words.map(({ written }) => written).join(' '));
}

const LONG =
  'The people who live at the other end of the long street that leads down to the harbour have never in their lives seen a ship come in at night, although they hear them, and they say that this is how it should be because a ship is a thing of the day and the night belongs to those who stay.';

describe('clauses', () => {
  it('end with sentences', () => {
    expect(clausesOf('It rains. Does it? It does! “Well.” (Good.) Yes… No')).toEqual([
      ...['It rains.', 'Does it?', 'It does!', '“Well.”', '(Good.)', 'Yes…', 'No'],
    ]);
  });

  it('continue after abbreviations, initials, decimals and addresses', () => {
    for (const text of [
      'Dr. Smith met Mr. J. K. Rao of St. Paul.',
      'Pay approx. 3.5 kg, i.e. little.',
      'See www.example.com or a.b@example.com now.',
      'The U.S. Army and No. 5.',
      'He came at 5 p.m. on foot.',
    ]) {
      const [first, ...others] = clausesOf(`Yes. ${text}`);
      expect(first).toBe('Yes.');
      expect(others).toEqual([text]);
    }
  });

  it('end with an abbreviation before another sentence', () => {
    expect(clausesOf('Pears, etc. He left at 5 p.m. She stayed.')).toEqual([
      'Pears, etc.',
      'He left at 5 p.m.',
      'She stayed.',
    ]);
  });

  it('end with a paragraph', () => {
    expect(clausesOf('A title\n\nAnd its\ntext\n \nEnd')).toEqual(['A title', 'And its text', 'End']);
  });

  it('end before an item of a list', () => {
    expect(spokenOf('Slots:\n- 5\n- 10\n  – 20 people', 'en-us')).toBe('Slots: | – five | – ten | – twenty people');
    expect(spokenOf('* 5 km\n* 10\n• 20', 'en-us')).toBe('five kilometers | ten | twenty');
    expect(spokenOf('from 5\n-10, 5 -\n10', 'en-us')).toBe('from five minus ten, | five to ten');
    expect(spokenOf('- 9 am - 5 pm\n- 8:00 - 9:00\n- noon', 'en-us')).toBe(
      "– nine A.M. to five P.M. | – eight o'clock to nine o'clock | – noon",
    );
  });

  it('start with a short one, up to a comma after three words', () => {
    expect(clausesOf('Well, to be honest, I do not know.')).toEqual(['Well, to be honest,', 'I do not know.']);
    const [first] = clausesOf(LONG);
    expect(first!.length).toBeLessThanOrEqual(60);
    expect(first!.split(' ').length).toBeLessThanOrEqual(12);
    expect(first!.split(' ').length).toBeGreaterThanOrEqual(3);
  });

  it('keep a short first sentence and phrases read together whole', () => {
    const sentence = 'This sentence has no comma and just a few words too many in it.';
    expect(clausesOf(sentence)).toEqual([sentence]);
    expect(clausesOf('Call +91 98765 43210 or somebody else who has the time for it today.')[0]).toBe(
      'Call +91 98765 43210',
    );
  });

  it('stay within 250 characters, at a comma or conjunction if there is one', () => {
    const clauses = clausesOf(`Yes. ${LONG}`);
    expect(clauses).toHaveLength(3);
    expect(clauses[1]).toMatch(/hear them,$/);
    for (const clause of clausesOf('word '.repeat(900))) expect(clause.length).toBeLessThanOrEqual(250);
  });

  it('count the spoken form, which may be longer', () => {
    const { clauses } = readScript('1,234,567 '.repeat(100), { language: 'ml' });
    expect(clauses.length).toBeGreaterThan(1);
    for (const { words } of clauses) {
      expect(words.map(({ spoken }) => spoken).join(' ').length).toBeLessThanOrEqual(250);
    }
  });

  it('break scripts without spaces at their own marks', () => {
    expect(clausesOf('我有三个苹果。你呢？', 'zh').map((clause) => clause.replaceAll(' ', ''))).toEqual([
      '我有三个苹果。',
      '你呢？',
    ]);
    for (const [language, text] of [
      ['zh', '我们今天去北京看朋友'],
      ['ja', '今日は良い天気ですから散歩に行きましょう'],
      ['th', 'ประเทศไทยเป็นประเทศที่สวยงามมาก'],
    ] as const) {
      const clauses = clausesOf(text.repeat(60), language);
      expect(clauses[0]!.length, language).toBeLessThanOrEqual(60);
      expect(clauses.length, language).toBeGreaterThan(2);
      expect(clauses.join('').replaceAll(' ', '')).toBe(text.repeat(60));
    }
  });

  it('end at the marks of Hindi, Urdu and Arabic', () => {
    expect(clausesOf('यह है। वह है।', 'hi')).toEqual(['यह है।', 'वह है।']);
    expect(clausesOf('یہ ہے۔ وہ ہے؟ ہاں', 'ur')).toEqual(['یہ ہے۔', 'وہ ہے؟', 'ہاں']);
  });

  it('do not exist for unpronounceable text', () => {
    for (const text of ['', ' \n ', '...', '😀 😀', '\u200b\u202e', '<speak/>', '*** ---']) {
      expect(readScript(text, { language: 'en-us' }).clauses, JSON.stringify(text)).toEqual([]);
    }
  });

  it('count all characters of a plain text', () => {
    expect(readScript(' a  😀 b\n', { language: 'en-us' }).characters).toBe(8);
  });
});
