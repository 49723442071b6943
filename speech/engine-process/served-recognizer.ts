import type { JsonValue } from '../../runtime/frames.ts';
import type { Recognizer } from '../recognizer.ts';
import { serveEngine } from './engine-child.ts';
import { BeginArgument } from './recognizer-calls.ts';

/** What a child makes: its description is known to whoever spawned it. */
export type ServedRecognizer = Omit<Recognizer, 'description' | 'beside'> & { beside?(): ServedRecognizer };

/** For the entry of a child process that `spawnRecognizer` starts. A RecognizerError that `create` throws crosses. */
export function serveRecognizer(create: (argument: unknown) => Promise<ServedRecognizer>): void {
  serveEngine(async (argument) => {
    const first = await create(argument);
    /** By the place that their owner gave them; 0 is the first. */
    const recognizers = new Map<number, ServedRecognizer>([[0, first]]);
    const at = (place: unknown): ServedRecognizer => {
      const recognizer = typeof place === 'number' ? (recognizers.get(place) ?? first.beside?.()) : undefined;
      if (recognizer === undefined) throw new TypeError('no such recognizer');
      recognizers.set(place as number, recognizer);
      return recognizer;
    };
    return {
      async begin(argument) {
        if (!BeginArgument.matches(argument)) throw new TypeError('not the options of an utterance');
        await at(argument.place).begin(argument.options);
        return null;
      },
      async write(place, body) {
        await at(place).write(toSamples(body));
        return null;
      },
      async hypothesis(place) {
        return toJson(await at(place).hypothesis());
      },
      async finish(place) {
        return toJson(await at(place).finish());
      },
      async cancel(place) {
        await at(place).cancel();
        return null;
      },
    };
  });
}

/** A copy: the body lies in the pipe's buffer, seldom on an even address. */
function toSamples(body: Buffer): Int16Array<ArrayBuffer> {
  const samples = new Int16Array(body.byteLength / Int16Array.BYTES_PER_ELEMENT);
  new Uint8Array(samples.buffer).set(body);
  return samples;
}

/** Interfaces are no JsonValue to the type checker; these hold nothing else. */
function toJson(value: object | null): JsonValue {
  return value as JsonValue;
}
