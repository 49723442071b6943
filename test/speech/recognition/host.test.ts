import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { EngineSettings } from '../../../speech/engines/available-engines.ts';
import { createSpeechRecognition } from '../../../speech/speech-recognition.thread.ts';
import type {
  OpenRecognitionOptions,
  RecognitionStream,
  SpeechRecognition,
} from '../../../speech/speech-recognition.ts';
import { CRASHING_WORD, DEADLY_WORD } from './scripted-engines.ts';
import { Speaker } from './spoken-to-desk.ts';

const SETTINGS: EngineSettings = { preferred: 'auto', processes: 2, modelsDir: '', cacheDir: '', upstream: null };

const logged: [fields: object, message: string][] = [];
let recognition: SpeechRecognition;

function create(settings: Partial<EngineSettings> = {}): Promise<SpeechRecognition> {
  return createSpeechRecognition({
    settings: { ...SETTINGS, ...settings },
    enginesModule: new URL('./scripted-engines.ts', import.meta.url),
    logger: { warn: (fields, message) => logged.push([fields, message]) },
  });
}

beforeAll(async () => {
  recognition = await create();
});

beforeEach(() => {
  logged.length = 0;
});

afterAll(() => recognition.close());

async function open(
  options: Partial<OpenRecognitionOptions> = {},
  on = recognition,
): Promise<{ speaker: Speaker; stream: RecognitionStream }> {
  let speaker: Speaker | null = null;
  const stream = await on.open({
    streamId: 'a stream',
    mode: 'live',
    languages: ['en'],
    keywords: [],
    hypothesisEveryMs: null,
    diarization: null,
    signal: new AbortController().signal,
    ...options,
    onEvent: (event) => {
      speaker?.events.push(event);
      options.onEvent?.(event);
    },
  });
  speaker = new Speaker(stream.utterances);
  return { speaker, stream };
}

const isEnded = ({ type }: { type: string }) => type === 'recognition.ended';

describe('speech recognition', () => {
  it('recognises posted audio in its own thread', async () => {
    const { speaker, stream } = await open();
    expect(stream.model).toBe('pocketsphinx/en-us');
    speaker.say([1, 2]);
    speaker.say([3]);
    speaker.hangUp();
    await speaker.events.first(isEnded);
    await speaker.closed;
    expect(speaker.outcomes).toEqual([
      [0, '1 2'],
      [1, '3'],
    ]);
  });

  it('lists its languages and the state of each engine', async () => {
    const own = await create();
    expect(own.languages()).toEqual([
      { code: 'en', engines: ['pocketsphinx'] },
      { code: 'hi', engines: ['sherpa-onnx'] },
    ]);
    const { speaker } = await open({}, own);
    speaker.say([1]);
    speaker.hangUp();
    await speaker.events.first(isEnded);
    const [pocketsphinx, sherpa, openai] = await own.engines();
    expect(pocketsphinx).toMatchObject({
      engine: 'pocketsphinx',
      models: ['en-us'],
      loaded: 1,
      busy: 0,
      problem: null,
    });
    expect(pocketsphinx?.realTimeFactor).toBeGreaterThan(0);
    expect(sherpa).toMatchObject({ models: ['hindi'], loaded: 0, realTimeFactor: null });
    expect(openai).toMatchObject({ models: [], problem: 'not configured' });
    await own.close();
  });

  it('rejects an unsupported language and reports how to add it', async () => {
    await expect(open({ languages: ['bn'] })).rejects.toMatchObject({
      code: 'unsupported_language',
      message: expect.stringMatching(/Bengali \(bn\).*tandem models fetch.*STT_BASE_URL.*English \(en\), Hindi \(hi\)/),
    });
  });

  it('changes the language for the next utterance, and keeps it if the new one is unsupported', async () => {
    const { speaker, stream } = await open();
    speaker.say([1]);
    await speaker.events.count(1);
    await stream.configure({ languages: ['hi'] });
    expect(stream.model).toBe('sherpa-onnx/hindi');
    await expect(stream.configure({ languages: ['bn'] })).rejects.toMatchObject({ code: 'unsupported_language' });
    speaker.say([2]);
    speaker.hangUp();
    await speaker.events.first(isEnded);
    expect(speaker.events.all.slice(0, 2)).toMatchObject([
      { recognition: { language: 'en', model: 'pocketsphinx/en-us' } },
      { recognition: { language: 'hi', model: 'sherpa-onnx/hindi' } },
    ]);
  });

  it('stops an aborted stream, closes its port and frees its recognizer', async () => {
    const controller = new AbortController();
    const { speaker } = await open({ signal: controller.signal });
    speaker.go(speaker.begin(), [1]);
    controller.abort();
    await speaker.closed;
    expect(speaker.events.all).toEqual([]);
    const busy = async () => (await recognition.engines()).map((engine) => engine.busy);
    await expect.poll(busy).toEqual([0, 0, 0]);
  });

  it('rejects an aborted signal', async () => {
    await expect(open({ signal: AbortSignal.abort(new Error('gone')) })).rejects.toThrow('gone');
  });

  it('logs a broken recognizer by name', async () => {
    const { speaker } = await open();
    speaker.say([CRASHING_WORD]);
    speaker.hangUp();
    await speaker.events.first(isEnded);
    expect(speaker.outcomes).toEqual([[0, String(CRASHING_WORD)]]);
    expect(logged).toEqual([[{ model: 'pocketsphinx/en-us', detail: 'as the script says' }, 'recognizer failed']]);
  });

  it('fails the streams of a dead thread and starts a new one', async () => {
    const [one, other] = [await open(), await open()];
    one.speaker.say([DEADLY_WORD]);
    const isFailed = ({ type }: { type: string }) => type === 'recognition.failed';
    expect(await one.speaker.events.first(isFailed)).toMatchObject({ code: 'INTERNAL' });
    await other.speaker.events.first(isFailed);
    await Promise.all([one.speaker.closed, other.speaker.closed]);
    const next = await open();
    next.speaker.say([4]);
    next.speaker.hangUp();
    await next.speaker.events.first(isEnded);
    expect(next.speaker.outcomes).toEqual([[0, '4']]);
    expect(logged).toMatchObject([[{ streams: 2 }, 'speech thread lost']]);
  });

  it('continues when an event listener throws', async () => {
    const { speaker } = await open({
      onEvent: () => {
        throw new Error('not now');
      },
    });
    speaker.say([1]);
    speaker.hangUp();
    await speaker.events.first(isEnded);
    expect(logged[0]).toMatchObject([{ streamId: 'a stream' }, 'recognition event listener threw']);
  });

  it('rejects streams after it is closed, and closes open ones', async () => {
    const own = await create();
    const { speaker } = await open({}, own);
    await Promise.all([own.close(), own.close()]);
    await speaker.closed;
    await expect(open({}, own)).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
  });

  it('fails to start when the engines do', async () => {
    await expect(create({ modelsDir: 'damaged' })).rejects.toMatchObject({
      code: 'INTERNAL',
      message: expect.stringContaining('as asked'),
    });
  });
});
