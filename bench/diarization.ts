import { alternating, atSpeed, diarizeWords, errorRate, namesIn, samplesOf } from '../test/speech/conversation.ts';
import { asteriskPrompts, PROMPTS_PACKAGE } from './asterisk-prompts.ts';

/**
 * How many words the basic diarisation attributes to the wrong speaker. The conversations combine recordings of single
 * people: a reader, a card player, the reader with a longer throat (the same recording slowed down, so only the voice
 * differs), and a telephone exchange. Real conversations, where people interrupt each other, are harder. Usage: node
 * bench/diarization.ts
 */

const reader = samplesOf('austen-reader');
const player = samplesOf('card-player');
const tallerReader = reader.map((samples) => atSpeed(samples, 0.87));
const exchange = asteriskPrompts(8).map(({ samples }) => atSpeed(samples, 0.5));

const conversations: Record<string, Record<string, Int16Array[]>> = {
  'reader, player': { reader, player },
  'reader, taller reader': { reader, tallerReader },
  'reader, player, taller reader': { reader, player, tallerReader },
  'reader alone': { reader },
  'player alone': { player },
};
if (exchange.length > 0) {
  conversations['exchange, reader'] = { exchange, reader };
  conversations['all four'] = { exchange, reader, player, tallerReader };
  conversations['exchange alone'] = { exchange };
} else {
  console.log(`voice of an exchange: left out, Debian's ${PROMPTS_PACKAGE} is not installed`);
}

printRow(['words given to another (voices found)', 'live', 'batch', 'live, number said', 'batch, number said']);
for (const [name, voices] of Object.entries(conversations)) {
  const figures: string[] = [];
  for (const count of [null, Object.keys(voices).length]) {
    for (const mode of ['live', 'batch'] as const) {
      const heard = await diarizeWords(alternating(voices), { mode, minSpeakers: count, maxSpeakers: count });
      figures.push(`${(100 * errorRate(heard)).toFixed(1)} % (${namesIn(heard).length})`);
    }
  }
  printRow([name, ...figures]);
}

function printRow([first = '', ...figures]: readonly string[]): void {
  console.log(`${first.padEnd(40)}${figures.map((figure) => figure.padStart(20)).join('')}`);
}
