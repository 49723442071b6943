import type { JsonValue } from '../../runtime/frames.ts';
import type { Recognizer } from '../recognizer.ts';
import { serveEngine } from './engine-child.ts';
import { BeginArgument } from './recognizer-calls.ts';
import { samplesOf } from './samples-of.ts';

/** A recognizer in the child. Its parent already knows the description. */
export type ServedRecognizer = Omit<Recognizer, 'description' | 'beside'> & { beside?(): ServedRecognizer };

/**
 * Entry of a child process that `spawnRecognizer` starts. A RecognizerError that `create` throws reaches the parent.
 */
export function serveRecognizer(create: (argument: unknown) => Promise<ServedRecognizer>): void {
  serveEngine(async (argument) => {
    const first = await create(argument);
    /** By the place that the parent assigned; 0 is the first. */
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
        await at(place).write(samplesOf(body));
        return null;
      },
      async pause(place) {
        await at(place).pause?.();
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

/** The type checker does not accept interfaces as JsonValue; these contain nothing else. */
function toJson(value: object | null): JsonValue {
  return value as JsonValue;
}
