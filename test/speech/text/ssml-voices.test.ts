import { describe, expect, it } from 'vitest';
import { readScript, voicesIn } from '../../../speech/text/read-script.ts';
import { ScriptError } from '../../../speech/text/script.ts';

const speak = (ssml: string) => `<speak>${ssml}</speak>`;

describe('voices in SSML', () => {
  it('select by name, language and gender, with outer voice and position', () => {
    const text = speak(
      'a <voice name="hi">b <lang xml:lang="en-GB">c</lang></voice>\n<voice gender="female" languages="fr"><voice language="de">d</voice></voice>',
    );
    expect(voicesIn(text)).toEqual([
      { name: 'hi', language: null, gender: null, outer: null, position: 'line 1, column 10' },
      { name: null, language: 'en-gb', gender: null, outer: 0, position: 'line 1, column 29' },
      { name: null, language: 'fr', gender: 'female', outer: null, position: 'line 2, column 1' },
      { name: null, language: 'de', gender: null, outer: 2, position: 'line 2, column 39' },
    ]);
  });

  it('do not occur in plain text and in SSML without them', () => {
    expect(voicesIn('say <voice name="hi">')).toEqual([]);
    expect(voicesIn(speak('one <language/>'))).toEqual([]);
  });

  it('form their own clauses, read in their language', () => {
    const text = speak('5% <lang xml:lang="hi-IN">5% <voice name="x">5%</voice></lang>, 5%');
    const { clauses, characters } = readScript(text, { language: 'en-us', voiceLanguages: ['hi-in', 'en-gb'] });
    expect(clauses.map(({ voice, words }) => [voice, words.map(({ spoken }) => spoken).join(' ')])).toEqual([
      [null, 'five percent'],
      [0, 'पांच प्रतिशत'],
      [1, 'five percent,'],
      [null, 'five percent'],
    ]);
    expect(characters).toBe('5% 5% 5%, 5%'.length);
  });

  it('restore the language of the document afterwards', () => {
    const text = '<speak xml:lang="hi">5% <voice name="x">5%</voice></speak>';
    const { clauses } = readScript(text, { language: 'en-us', voiceLanguages: ['en-us'] });
    expect(clauses.map(({ words }) => words[0]!.spoken)).toEqual(['पांच प्रतिशत', 'five percent']);
  });

  it('keep the prosody around them', () => {
    const { clauses } = readScript(speak('<prosody rate="slow"><lang xml:lang="hi">a</lang></prosody>'), {
      language: 'en-us',
      voiceLanguages: ['hi'],
    });
    expect(clauses[0]).toMatchObject({ voice: 0, prosody: { rate: 0.75 } });
  });

  it.each([
    ['lang without a language', '<lang>x</lang>', '<lang> needs xml:lang'],
    [
      'lang with a wrong language',
      '<lang xml:lang="x!">x</lang>',
      'xml:lang="x!" is not supported; allowed: a language',
    ],
    ['voice without a wish', '<voice>x</voice>', '<voice> needs a name, a language or a gender'],
    ['a gender', '<voice gender="neutral">x</voice>', 'gender="neutral" is not supported; allowed: female, male'],
    ['an empty name', '<voice name="">x</voice>', 'name="" is not supported'],
    ['a long name', `<voice name="${'x'.repeat(65)}">x</voice>`, 'is not supported; allowed: 1 to 64 characters'],
    ['a list of languages', '<voice languages="en hi">x</voice>', 'languages="en hi" is not supported'],
    ['another attribute', '<voice age="7">x</voice>', '<voice> has no attribute age; there are name, gender'],
    ['voice in say-as', '<say-as interpret-as="date"><voice name="a">x</voice></say-as>', '<say-as> takes text alone'],
    ['lang in sub', '<sub alias="x"><lang xml:lang="en">x</lang></sub>', '<sub> takes text alone, and no <lang>'],
    ['voice in phoneme', '<phoneme ph="a"><voice name="a">x</voice></phoneme>', '<phoneme> takes text alone'],
    ['voice in break', '<break><voice name="a"/></break>', '<break> is empty and takes no <voice>'],
    ['too many', '<voice name="a">x</voice>'.repeat(51), 'the voice changes more than 50 times'],
  ])('fail: %s', (_, ssml, message) => {
    expect(() => voicesIn(speak(ssml))).toThrow(ScriptError);
    expect(() => voicesIn(speak(ssml))).toThrow(message);
  });
});
