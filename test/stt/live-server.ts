import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLiveStt, type LiveSttDesk } from '../../actors/stt/live-stt.actor.ts';
import type { HttpServerOptions } from '../../http/server-options.ts';
import type { ListeningPlane } from '../../media/listening-plane.ts';
import { createListeningPlane } from '../../media/listening-plane.workers.ts';
import { systemClock } from '../../runtime/clock.ts';
import { createSpeechRecognition } from '../../speech/speech-recognition.thread.ts';
import type { SpeechRecognition } from '../../speech/speech-recognition.ts';
import { topUp } from '../../storage/ledger.ts';
import { createFakeDeliverer, createTestLogger } from '../actors/fakes.ts';
import { createHttpFixture, type HttpFixture } from '../http/fixture.ts';
import { USD } from '../storage/seed.ts';

export interface Speech {
  listening: ListeningPlane;
  recognition: SpeechRecognition;
}

/** The API with real live transcription actors, and an owner with funds. */
export interface LiveServer extends AsyncDisposable {
  fixture: HttpFixture;
  origin: string;
  stt: LiveSttDesk;
}

export async function startLiveServer(
  { listening, recognition }: Speech,
  { balanceNano = 5n * USD, ...options }: Partial<HttpServerOptions> & { balanceNano?: bigint } = {},
): Promise<LiveServer> {
  let desk: LiveSttDesk | null = null;
  const fixture = await createHttpFixture({
    liveStt: { open: (session) => desk!.open(session), languages: () => desk!.languages() },
    now: () => new Date(),
    ...options,
  });
  const parts = { sql: fixture.sql, listening, recognition, refine: null, clock: systemClock };
  const stt = createLiveStt({ ...parts, deliverer: createFakeDeliverer(), logger: createTestLogger() });
  desk = stt;
  await topUp(fixture.sql, {
    workspaceId: fixture.owner.workspaceId,
    amountNano: balanceNano,
    paymentType: 'admin_bonus',
    operationKey: 'live server',
  });
  await fixture.app.listen({ host: '127.0.0.1', port: 0 });
  return {
    fixture,
    origin: `http://127.0.0.1:${(fixture.app.server.address() as AddressInfo).port}`,
    stt,
    async [Symbol.asyncDispose]() {
      await fixture.app.close();
      await stt.close();
      await fixture[Symbol.asyncDispose]();
    },
  };
}

/** Real voice detection and the bundled recogniser. */
export async function startSpeech(): Promise<Speech & AsyncDisposable> {
  const cacheDir = await mkdtemp(join(tmpdir(), 'tandem-live-'));
  const listening = createListeningPlane({ workers: 1 });
  const settings = {
    preferred: 'pocketsphinx',
    processes: 1,
    modelsDir: join(cacheDir, 'models'),
    upstream: null,
  } as const;
  const recognition = await createSpeechRecognition({
    settings: { ...settings, cacheDir },
    enginesModule: new URL('./pocketsphinx-only.ts', import.meta.url),
  });
  return {
    listening,
    recognition,
    async [Symbol.asyncDispose]() {
      await recognition.close();
      await listening.close();
      await rm(cacheDir, { recursive: true, force: true });
    },
  };
}
