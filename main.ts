import { hkdfSync, randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { createCallActors } from './actors/call.actor.ts';
import { createCallFeed } from './actors/call-feed.ts';
import { createCallRegistry } from './actors/call-registry.ts';
import { createCallSpeechDesk } from './actors/call-speech.ts';
import { createTranscriptDesk } from './actors/call-transcript.ts';
import type { PublicCall } from './actors/call-view.ts';
import type { Resolve } from './actors/callbacks/callback-url.ts';
import { createDeliverer } from './actors/callbacks/deliverer.ts';
import { createDeliveryStore } from './actors/callbacks/delivery-store.ts';
import { parseCidrs } from './actors/callbacks/public-address.ts';
import { openChat } from './actors/chat/open-chat.ts';
import { createClickToCall } from './actors/click-to-call.ts';
import { systemClock } from './actors/clock.ts';
import { createDocumentDesk } from './actors/documents/document-readings.ts';
import { inspectTransitions } from './actors/inspection.ts';
import { openJudge } from './actors/judge/open-judge.ts';
import { openMemory } from './actors/memory/open-memory.ts';
import { collectNumberRent } from './actors/number-rent.ts';
import { reconcile } from './actors/reconcile.ts';
import { createRecordingDesk } from './actors/recording.actor.ts';
import { createLiveStt } from './actors/stt/stt-session.actor.ts';
import { createTranscriber } from './actors/stt/transcription.actor.ts';
import { watchTrunks } from './actors/trunk-watch.ts';
import { expireAudio } from './actors/tts/audio-expiry.ts';
import { failLostStreams } from './actors/tts/lost-streams.ts';
import { createTtsDesk } from './actors/tts/tts-stream.actor.ts';
import { createVoiceDesk } from './actors/voices/voice-administration.ts';
import { createWebhookDesk } from './actors/webhooks/webhook-administration.ts';
import { type Config, ConfigError, describeConfig, loadConfig, wantsHelp } from './config.ts';
import { signedMediaUrl } from './http/playback.ts';
import { createHttpServer } from './http/server.ts';
import type { LanguageModels } from './language/llm.ts';
import { openLanguageModels } from './language/open-language-models.ts';
import { loadTokenizer } from './language/tokens.ts';
import { createTranscriptRefiner } from './language/transcript-refiner.ts';
import { createLogger, type Logger } from './logging.ts';
import { TandemError } from './machines/errors.ts';
import { createListeningPlane } from './media/listening/listening-pool.ts';
import { createMediaPlane } from './media/worker-pool.ts';
import { createDrachtioGateway } from './sip/drachtio-gateway.ts';
import { startEmbeddedSipServer } from './sip/embedded/embedded-sip-server.ts';
import { engineSettingsOf } from './speech/engines/available-engines.ts';
import { synthesisSettingsOf } from './speech/engines/available-synthesizers.ts';
import { createSpeechRecognition } from './speech/recognition-host.ts';
import type { Refine } from './speech/refinement.ts';
import { warmUpSpeech } from './speech/synthesis/warm-up.ts';
import { createSpeechSynthesis } from './speech/synthesis-host.ts';
import { readScript } from './speech/text/read-script.ts';
import { createVoiceCatalogue } from './speech/voices/built-in-voices.ts';
import { bootstrap } from './storage/bootstrap.ts';
import { type DataFolder, openDataFolder } from './storage/data-folder.ts';
import { openDatabase } from './storage/database.ts';
import { startEmbeddedPostgres } from './storage/embedded/postgres.ts';
import { openJobs } from './storage/jobs.ts';
import { openLimits } from './storage/limits/open-limits.ts';
import { openObjectStore } from './storage/objects.ts';
import { resealSecrets } from './storage/reseal-secrets.ts';
import { createSecretBox } from './storage/secrets.ts';

/** A running Tandem. */
export interface Tandem {
  /** e.g. `http://127.0.0.1:8080` */
  readonly url: string;
  readonly sip: { host: string; port: number } | null;
  readonly workspaceId: string;
  readonly ownerUserId: number;
  /** The key that was minted on this start, because there was none and none was configured. */
  readonly mintedApiKey: string | null;
  /** What took how long to start, in order. */
  readonly steps: { name: string; ms: number }[];
  readonly dataFolder: DataFolder;
  readonly databaseUrl: string;
  /** Asks every carrier now whether it is there, instead of at the next interval. */
  probeTrunks(): Promise<void>;
  /** What is measured on the legs of a live call at the moment; null when it is not live here. */
  qualityOf(callId: string): Promise<PublicCall['quality']>;
  /** Drains: live calls may go on for `graceMs`, then everything is closed in the opposite order of its start. */
  stop(options?: { graceMs?: number }): Promise<void>;
  /** Resolves with the reason when a part that cannot be replaced is lost; the owner should stop and start again. */
  readonly broken: Promise<string>;
}

export interface StartOptions {
  logger: Logger;
  /** Told of each part as it is up. */
  onStep?: (step: { name: string; ms: number }) => void;
  /** Looks up the hosts of callbacks; default: DNS. */
  resolve?: Resolve;
}

/**
 * Starts every part in the order of dependence: storage, media, SIP, actors, and HTTP last, after the calls of an
 * earlier run were reconciled. If one does not start, those before it are stopped again.
 */
export async function startTandem(config: Config, { logger, onStep, resolve }: StartOptions): Promise<Tandem> {
  const opened: (() => unknown)[] = [];
  const steps: Tandem['steps'] = [];
  const broken = Promise.withResolvers<string>();
  const started = performance.now();
  let lastStepAt = started;

  function step(name: string): void {
    const now = performance.now();
    const entry = { name, ms: Math.round(now - lastStepAt) };
    lastStepAt = now;
    steps.push(entry);
    onStep?.(entry);
  }

  let closing = false;
  const onLost = (reason: string) => {
    if (!closing) broken.resolve(reason);
  };

  async function closeAll(): Promise<void> {
    closing = true;
    for (const close of opened.reverse().splice(0)) {
      try {
        await close();
      } catch (error) {
        logger.error({ err: error }, 'a part did not close cleanly');
      }
    }
  }

  try {
    const folder = await openDataFolder(config.dataDir, config.secretKey ?? undefined);
    opened.push(() => folder.close());
    // Their threads take a while to look at what is installed; storage and SIP need not wait for that.
    // It holds the thread up for a moment, which nobody notices before the first request.
    const counting = loadTokenizer();
    counting.catch(() => {});
    const recognising = createSpeechRecognition({ settings: engineSettingsOf(config), logger });
    const recognised = recognising.catch(() => null);
    opened.push(async () => await (await recognised)?.close());
    const synthesising = createSpeechSynthesis({ settings: synthesisSettingsOf(config), logger });
    const synthesised = synthesising.catch(() => null);
    opened.push(async () => await (await synthesised)?.close());
    const databaseUrl = config.databaseUrl ?? (await embeddedDatabase());
    const database = await openDatabase({ url: databaseUrl, max: 16, logger });
    opened.push(() => database.close());
    const { sql } = database;
    const objects = await openObjectStore({ folder: folder.objectsDir });
    const secrets = createSecretBox(folder.masterKey, config.previousSecretKeys);
    if (config.previousSecretKeys.length > 0) await resealSecrets(sql, secrets, { logger });
    const jobs = await openJobs({ databaseUrl, logger, ...(config.redisUrl && { redisUrl: config.redisUrl }) });
    opened.push(() => jobs.close());
    const enterprise = { perMinute: config.enterprisePerMinute, perDay: config.enterprisePerDay };
    const limits = await openLimits({ redisUrl: config.redisUrl, plans: { enterprise }, logger });
    opened.push(() => limits.close());
    const owner = await bootstrap(sql, config);
    step('storage');

    const mediaPlane = createMediaPlane({ workers: config.mediaWorkers, ...rtpAddress(config), logger });
    opened.push(() => mediaPlane.close());
    step('media');

    const sipServer = await sipServerOf();
    // A server of the operator's may come up after us; until then placements answer C2C_NOT_CONFIGURED.
    const connectInBackground = config.drachtioHost !== null;
    const sip = await createDrachtioGateway({ ...sipServer.control, connectInBackground, logger });
    opened.push(() => sip.close());
    step('sip');

    const models = await openLanguageModels(config, {
      clock: systemClock,
      onTrouble: (detail) => logger.warn({ detail }, 'the process of a language model ended'),
    });
    opened.push(() => models.close());
    const listening = createListeningPlane({ workers: config.mediaWorkers, logger });
    opened.push(() => listening.close());
    const recognition = await recognising;
    const synthesis = await synthesising;
    await counting;
    step('speech');

    const clock = systemClock;
    const registry = createCallRegistry();
    const feed = createCallFeed({ logger });
    const allowCidrs = parseCidrs(config.callbackAllowCidrs);
    const lookUp = resolve && { resolve };
    const deliverer = createDeliverer({
      store: createDeliveryStore(sql),
      jobs: await jobs.open('deliveries'),
      secrets,
      allowCidrs,
      logger,
      ...lookUp,
    });
    opened.push(() => deliverer.close());
    const recordings = createRecordingDesk({ ...folder, sql, objects, clock, logger });
    opened.push(() => recordings.close());
    const transcripts = createTranscriptDesk({ sql, listening, recognition, clock, logger });
    opened.push(() => transcripts.close());
    const catalogue = createVoiceCatalogue(synthesis.voices(), { preferred: config.ttsEngine });
    const voiceParts = { synthesis, catalogue, listening, recognition, deliverer };
    const voices = createVoiceDesk({ ...folder, sql, objects, ...voiceParts, clock, logger });
    opened.push(() => voices.close());
    const speeches = createCallSpeechDesk({ synthesis, voices, readScript, clock, logger });
    const desks = { deliverer, recordings, transcripts, speeches };
    const parts = { ...folder, sql, sip, mediaPlane, secrets, registry, feed, ...desks, clock, logger };
    const inspect = logger.isLevelEnabled('debug') ? { inspect: inspectTransitions(logger) } : {};
    const actors = createCallActors({ ...parts, ...inspect });
    await reconcile({ ...parts, now: new Date() });
    const stopBeating = folder.beat();
    opened.push(stopBeating);
    await deliverer.start();
    const trunkWatch = watchTrunks(parts);
    opened.push(() => trunkWatch.close());
    const numberRent = collectNumberRent({ sql, clock, logger });
    opened.push(() => numberRent.close());
    const dialer = createClickToCall({ ...parts, actors, trunkWatch, allowCidrs, ...lookUp });
    const stt = { sql, listening, recognition, deliverer, refine: refinerOf(config, models), clock, logger };
    const liveStt = createLiveStt({ ...stt, ...inspect });
    opened.push(() => liveStt.close());
    const transcriber = createTranscriber({ ...stt, ...inspect, limits, tempDir: folder.tempDir });
    await voices.start();
    await failLostStreams({ ...parts, now: new Date() });
    const audioExpiry = expireAudio({ sql, objects, node: folder.node, clock, logger });
    opened.push(() => audioExpiry.close());
    const urlSigningSecret = derivedKey(folder.masterKey, 'tandem url signing');
    const publicUrl = config.publicUrl?.replace(/\/$/, '') ?? null;
    let ownUrl = '';
    const speech = createTtsDesk({
      ...{ ...parts, synthesis, voices, catalogue, readScript, objects },
      audioUrl: (object) => signedMediaUrl({ ...object, baseUrl: publicUrl ?? ownUrl, secret: urlSigningSecret }),
    });
    opened.push(() => speech.close());
    const chat = await openChat({ ...parts, models });
    opened.push(() => chat.close());
    const judge = await openJudge({ ...parts, jobs, models });
    opened.push(() => judge.close());
    const memory = openMemory({ ...parts, jobs, models, embeddings: config, index: config.memoryIndex });
    opened.push(() => memory.close());
    const documents = createDocumentDesk({ sql, limits, tempDir: folder.tempDir });
    opened.push(() => documents.close());
    await memory.ready({ withinMs: 3_000 });
    step('actors');

    const http = createHttpServer({
      sql,
      dialer,
      transcriber,
      speech,
      voices,
      liveStt,
      models,
      chat,
      judge: judge.desk,
      memory,
      documents,
      webhooks: createWebhookDesk({ sql, secrets, deliverer, allowCidrs, ...lookUp }),
      objects,
      secrets,
      limits,
      corsOrigins: config.corsOrigins,
      trustedProxies: config.trustedProxies,
      urlSigningSecret,
      publicUrl,
      stripeWebhookSecret: config.stripeWebhookSecret,
      logger,
    });
    opened.push(() => http.close());
    await http.listen({ host: config.host, port: config.port }).catch(nameThePort('PORT', config.port));
    ownUrl = urlOf(http.server.address() as AddressInfo);
    step('http');
    listening.warmUp();
    const warmingUp = new AbortController();
    opened.push(() => warmingUp.abort());
    // A model file takes a while to load.
    models.list().catch(() => {});
    void warmUpSpeech(synthesis, { recipe: catalogue.usual.recipe, signal: warmingUp.signal });

    let stopping: Promise<void> | null = null;
    return {
      url: ownUrl,
      sip: sipServer.address,
      workspaceId: owner.workspaceId,
      ownerUserId: owner.userId,
      mintedApiKey: owner.mintedApiKey,
      steps,
      dataFolder: folder,
      databaseUrl,
      broken: broken.promise,
      qualityOf: async (callId) => (await registry.get(callId)?.media?.quality()) ?? null,
      probeTrunks: () => trunkWatch.probeAll(),
      async stop({ graceMs = 0 } = {}) {
        await dialer.drain(graceMs);
        stopping ??= closeAll();
        await stopping;
      },
    };

    async function embeddedDatabase(): Promise<string> {
      const postgres = await startEmbeddedPostgres({ dataDir: folder.path, logger, onExit: onLost });
      opened.push(() => postgres.stop());
      return postgres.url;
    }

    async function sipServerOf() {
      if (config.drachtioHost !== null) {
        if (config.drachtioSecret === null) throw new ConfigError('DRACHTIO_SECRET is needed with DRACHTIO_HOST.');
        const control = { host: config.drachtioHost, port: config.drachtioPort, secret: config.drachtioSecret };
        return { control, address: null };
      }
      const secret = randomBytes(24).toString('base64url');
      const server = await startEmbeddedSipServer({
        ...sipAddress(config),
        sipPort: config.sipPort,
        transports: config.sipTransports,
        secret,
        onFault: (error) => logger.error({ err: error }, 'the SIP server dropped a message it failed on'),
        onExit: (error) => onLost(`The embedded SIP server ended: ${error?.message ?? 'no reason known'}`),
      }).catch(nameThePort('SIP_PORT', config.sipPort));
      opened.push(() => server.close());
      return {
        control: { host: server.controlHost, port: server.controlPort, secret },
        address: { host: config.sipHost, port: server.sipPort },
      };
    }
  } catch (error) {
    await closeAll();
    throw error;
  }
}

/** Null: refinement is not configured. */
function refinerOf(config: Config, models: LanguageModels): Refine | null {
  return config.llmBaseUrl === null && config.llmModelPath === null ? null : createTranscriptRefiner(models);
}

/** Binds the address itself where it is one of this machine's, else all of them, and tells carriers the address. */
function rtpAddress(config: Config) {
  const range = { rtpPortMin: config.rtpPortMin, rtpPortMax: config.rtpPortMax };
  if (isOwnAddress(config.rtpHost)) return { rtpHost: config.rtpHost, ...range };
  return { rtpHost: config.rtpHost.includes(':') ? '::' : '0.0.0.0', advertisedHost: config.rtpHost, ...range };
}

function sipAddress({ sipHost }: Config) {
  return isOwnAddress(sipHost) ? { sipHost } : { sipHost: '0.0.0.0', advertisedHost: sipHost };
}

function isOwnAddress(host: string): boolean {
  return Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === host));
}

function urlOf({ address, family, port }: AddressInfo): string {
  const host = address === '0.0.0.0' || address === '::' ? '127.0.0.1' : address;
  return `http://${family === 'IPv6' && host.includes(':') ? `[${host}]` : host}:${port}`;
}

function derivedKey(masterKey: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', masterKey, Buffer.alloc(0), purpose, 32));
}

/** A port that cannot be had is the operator's to change, so the error names the setting. */
function nameThePort(variable: string, port: number): (error: Error) => never {
  return (error) => {
    const isPortTrouble = /EADDRINUSE|EACCES|EADDRNOTAVAIL/.test(
      `${(error as NodeJS.ErrnoException).code} ${error.message}`,
    );
    if (!isPortTrouble) throw error;
    throw new ConfigError(`Port ${port} cannot be opened (${error.message}): set ${variable} to a free one.`);
  };
}

/** Live calls may go on for this long after a SIGTERM or SIGINT; a second signal hangs them up at once. */
const DRAIN_MS = 30_000;

export interface ServeOptions {
  argv: readonly string[];
  /** Default: made of the configured level, on standard output. */
  createLogger?: typeof createLogger;
  /** Told once everything is up. Default: prints the key that was minted, if one was. */
  onReady?: (tandem: Tandem) => void;
}

/** `npm start`: runs until a signal, a lost part or a failed start; the exit code tells which. */
export async function serve({
  argv,
  createLogger: makeLogger = createLogger,
  onReady = printMintedKey,
}: ServeOptions): Promise<void> {
  if (wantsHelp(argv)) {
    process.stdout.write(describeConfig());
    return;
  }
  const config = loadConfig(process.env, argv);
  const logger = makeLogger({ level: config.logLevel });
  const signals = listenForSignals();
  const tandem = await startTandem(config, { logger, onStep: ({ name, ms }) => logger.info({ name, ms }, 'started') });
  logger.info({ url: tandem.url, sip: tandem.sip, workspaceId: tandem.workspaceId }, 'Tandem is ready');
  onReady(tandem);

  const lost = tandem.broken.then((reason) => {
    logger.fatal({ reason }, 'a part was lost that cannot be replaced while running');
    return 1;
  });
  const exitCode = await Promise.race([signals.first.then(() => 0), lost]);
  if (exitCode === 0) logger.info({ drainMs: DRAIN_MS }, 'draining: live calls may finish, a second signal ends them');
  const impatient = signals.second.then(() => tandem.stop());
  await Promise.race([tandem.stop({ graceMs: exitCode === 0 ? DRAIN_MS : 0 }), impatient]);
  logger.info({}, 'Tandem has stopped');
  process.exit(exitCode);
}

function printMintedKey({ mintedApiKey }: Tandem): void {
  if (mintedApiKey) process.stdout.write(`\nYour API key, shown this once: ${mintedApiKey}\n\n`);
}

/** From now on SIGTERM and SIGINT are counted instead of ending the process, also while it starts. */
function listenForSignals(): { first: Promise<void>; second: Promise<void> } {
  const first = Promise.withResolvers<void>();
  const second = Promise.withResolvers<void>();
  let count = 0;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      count += 1;
      (count === 1 ? first : second).resolve();
    });
  }
  return { first: first.promise, second: second.promise };
}

if (import.meta.main) {
  serve({ argv: process.argv.slice(2) }).catch((error: unknown) => {
    // One line that says what to do; everything else is a defect and shows its stack.
    const isExpected = error instanceof ConfigError || error instanceof TandemError;
    process.stderr.write(`${isExpected ? error.message : ((error as Error).stack ?? error)}\n`);
    process.exit(1);
  });
}
