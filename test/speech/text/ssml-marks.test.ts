import { describe, expect, it } from 'vitest';
import { readScript } from '../../../speech/text/read-script.ts';
import { ScriptError } from '../../../speech/text/script.ts';

const inside = (ssml: string) => readScript(`<speak>${ssml}</speak>`, { language: 'en-us' });

/** The clauses as text with marks in brackets. */
function placed(ssml: string): string[] {
  return inside(ssml).clauses.map(({ words, marks, pauseAfterMs }) => {
    const at = (index: number) => marks.filter(({ word }) => word === index).map(({ name }) => `[${name}]`);
    const pieces = [...words.flatMap(({ written }, index) => [...at(index), written]), ...at(words.length)];
    return [...pieces, ...(pauseAfterMs > 0 ? [`${pauseAfterMs} ms`] : [])].join(' ');
  });
}

describe('marks in SSML', () => {
  it.each([
    ['before the first word', '<mark name="a"/>One two', ['[a] One two']],
    ['between words', 'One <mark name="a"/> two', ['One [a] two']],
    ['next to a word', 'One <mark name="a"/>two<mark name="b"/> three', ['One [a] two [b] three']],
    ['after the last word', 'One two <mark name="a"/>', ['One two [a]']],
    ['several at one place', 'One <mark name="a"/><mark name="b"/> two', ['One [a] [b] two']],
    ['before punctuation', 'One<mark name="a"/>, two', ['One, [a] two']],
    ['after punctuation', 'One,<mark name="a"/> two', ['One, [a] two']],
    ['inside a word', 'One to<mark name="a"/>day', ['One [a] today']],
    ['inside quotes', 'One "<mark name="a"/>two" three', ['One [a] "two" three']],
    ['before a break', 'One<mark name="a"/> <break time="1s"/> two', ['One [a] 1000 ms', 'two']],
    ['after a break', 'One <break time="1s"/> <mark name="a"/> two', ['One 1000 ms', '[a] two']],
    [
      'between breaks',
      'One <break time="1s"/><mark name="a"/><break time="2s"/> two',
      ['One 1000 ms', '[a] 2000 ms', 'two'],
    ],
    ['before a break at the beginning', '<mark name="a"/><break time="1s"/> two', ['[a] 1000 ms', 'two']],
    ['after a break at the end', 'One <break time="1s"/><mark name="a"/>', ['One 1000 ms', '[a]']],
    ['in prosody', 'One <prosody rate="slow"><mark name="a"/>two</prosody> three', ['One', '[a] two', 'three']],
    ['before prosody', 'One <mark name="a"/> <prosody rate="slow">two</prosody>', ['One', '[a] two']],
    ['between sentences', 'One. <mark name="a"/> Two.', ['One.', '[a] Two.']],
    ['between paragraphs', '<p>One.</p><mark name="a"/><p>Two.</p>', ['One. 400 ms', '[a] Two. 400 ms']],
    [
      'before and after say-as',
      'One <mark name="a"/><say-as interpret-as="digits">22</say-as><mark name="b"/> two',
      ['One [a] 22 [b] two'],
    ],
    ['in text without spaces', '你好<mark name="a"/>世界', ['你好 [a] 世界']],
  ])('keep their place %s', (_, ssml, expected) => {
    expect(placed(ssml)).toEqual(expected);
  });

  it('do not change the spoken and billed text', () => {
    const text = 'Please call <m/>911 <m/>now, Dr. <m/>Rao. It is <m/>10:30 <m/>am.';
    const marked = inside(text.replaceAll('<m/>', '<mark name="m"/>'));
    const plain = inside(text.replaceAll('<m/>', ''));
    expect(marked.clauses.flatMap(({ marks }) => marks)).toHaveLength(5);
    expect({ ...marked, clauses: marked.clauses.map((clause) => ({ ...clause, marks: [] })) }).toEqual(plain);
  });

  it.each([
    ['no name', '<mark/>', '<mark> needs a name'],
    ['an empty name', '<mark name=" "/>', '<mark> needs a name'],
    ['a long name', `<mark name="${'x'.repeat(101)}"/>`, 'name is longer than 100 characters'],
    ['too many', 'One <mark name="a"/>'.repeat(251), 'there are more than 250 marks'],
    ['text', '<mark name="a">One</mark>', '<mark> has no text'],
    ['an element inside', '<mark name="a"><break/></mark>', '<mark> is empty and takes no <break>'],
    ['a place in a break', '<break><mark name="a"/></break>', '<break> is empty and takes no <mark>'],
    ['a place in sub', '<sub alias="x"><mark name="a"/>y</sub>', '<sub> takes text alone, and no <mark>'],
    ['a place in say-as', '<say-as interpret-as="date"><mark name="a"/></say-as>', '<say-as> takes text alone'],
    ['a place in phoneme', '<phoneme ph="a"><mark name="a"/></phoneme>', '<phoneme> takes text alone'],
    ['another attribute', '<mark name="a" id="b"/>', '<mark> has no attribute id; there are name'],
  ])('fail with %s', (_, ssml, message) => {
    expect(() => inside(ssml)).toThrow(ScriptError);
    expect(() => inside(ssml)).toThrow(message);
  });
});
