import type { JsonValue } from '../../runtime/frames.ts';
import type { Recognizer } from '../recognizer.ts';
import { serveEngine } from './engine-child.ts';
import { UtteranceOptionsArgument } from './recognizer-calls.ts';

/** What a child makes: its description is known to whoever spawned it. */
export type ServedRecognizer = Omit<Recognizer, 'description'>;

/** For the entry of a child process that `spawnRecognizer` starts. A RecognizerError that `create` throws crosses. */
export function serveRecognizer(create: (argument: unknown) => Promise<ServedRecognizer>): void {
  serveEngine(async (argument) => {
    const recognizer = await create(argument);
    return {
      async begin(options) {
        if (!UtteranceOptionsArgument.matches(options)) throw new TypeError('not the options of an utterance');
        await recognizer.begin(options);
        return null;
      },
      async write(_, body) {
        await recognizer.write(toSamples(body));
        return null;
      },
      async hypothesis() {
        return toJson(await recognizer.hypothesis());
      },
      async finish() {
        return toJson(await recognizer.finish());
      },
      async cancel() {
        await recognizer.cancel();
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
