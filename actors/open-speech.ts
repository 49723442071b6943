import type { InspectionEvent } from 'xstate';
import type { ListeningPlane } from '../media/listening-plane.ts';
import type { Clock } from '../runtime/clock.ts';
import type { SpeechEngines } from '../speech/open-speech-engines.ts';
import type { Refine } from '../speech/refinement.ts';
import { readScript } from '../speech/text/read-script.ts';
import type { Storage } from '../storage/open-storage.ts';
import type { LostOwner } from '../storage/queries/nodes.ts';
import type { Resolve } from './callbacks/callback-url.ts';
import type { Deliverer } from './callbacks/deliverer.ts';
import type { Cidr } from './callbacks/public-address.ts';
import type { Logger } from './logger.ts';
import { createLiveStt, type LiveSttDesk } from './stt/live-stt.actor.ts';
import { createTranscriber } from './stt/transcriber.actor.ts';
import type { Transcriber } from './stt/transcriber.ts';
import { expireAudio } from './tts/audio-expiry.ts';
import { failLostStreams } from './tts/lost-streams.ts';
import { createTtsDesk, type TtsDeskOptions } from './tts/tts-desk.actor.ts';
import { createVoiceDesk } from './voices/voice-desk.actor.ts';
import type { VoiceDesk } from './voices/voice-desk.ts';

export interface OpenSpeechOptions {
  storage: Storage;
  listening: ListeningPlane;
  engines: SpeechEngines;
  deliverer: Deliverer;
  /** Private networks that audio may be fetched from. */
  allowCidrs: readonly Cidr[];
  /** Default: the system's DNS servers. */
  resolve?: Resolve;
  /** Null: no language model is configured. */
  refine: Refine | null;
  audioUrl: TtsDeskOptions['audioUrl'];
  clock: Clock;
  logger: Logger;
  inspect?: (event: InspectionEvent) => void;
}

export interface Speech extends AsyncDisposable {
  readonly voices: VoiceDesk;
  readonly tts: ReturnType<typeof createTtsDesk>;
  readonly liveStt: LiveSttDesk;
  readonly transcriber: Transcriber;
}

/**
 * Opens voices, synthesis, live STT sessions and uploads, after resuming unfinished voices and refunding synthesis
 * requests of earlier boots.
 */
export async function openSpeech(options: OpenSpeechOptions): Promise<Speech> {
  const { storage, listening, engines, deliverer, clock, logger, audioUrl, refine, inspect } = options;
  const { allowCidrs, resolve } = options;
  const { folder, sql, objects, limits, nodes } = storage;
  const { recognition, synthesis, catalogue } = engines;
  const shared = { sql, objects, listening, deliverer, recognition, synthesis, catalogue, clock, logger };
  await using opening = new AsyncDisposableStack();
  const voices = createVoiceDesk({ ...folder, ...shared });
  opening.defer(() => voices.close());
  const inspected = inspect ? { inspect } : {};
  const liveStt = createLiveStt({ ...shared, ...inspected, refine });
  opening.defer(() => liveStt.close());
  const download = { allowCidrs, ...(resolve && { resolve }) };
  const { tempDir } = folder;
  const transcriber = createTranscriber({ ...shared, ...inspected, refine, limits, tempDir, download });
  await voices.start();
  const failLost = async (lost: LostOwner) =>
    void (await failLostStreams({ ...shared, lost, now: new Date(clock.now()) }));
  await failLost({ node: folder.node, exceptBoot: folder.boot });
  nodes.onLost(failLost);
  const audioExpiry = expireAudio({ sql, objects, node: folder.node, clock, logger });
  opening.defer(() => audioExpiry.close());
  const tts = createTtsDesk({ ...folder, ...shared, voices, readScript, audioUrl });
  opening.defer(() => tts.close());
  const opened = opening.move();
  return { voices, tts, liveStt, transcriber, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}
