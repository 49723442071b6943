import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { openCallTrace } from './actors/call-trace.ts';
import type { PublicCall } from './actors/call-view.ts';
import type { Resolve } from './actors/callbacks/callback-url.ts';
import { createDeliverer } from './actors/callbacks/deliverer.ts';
import { createDeliveryStore } from './actors/callbacks/delivery-store.ts';
import { parseCidrs } from './actors/callbacks/public-address.ts';
import { inspectTransitions } from './actors/inspection.ts';
import { createMetrics } from './actors/observability/metrics.prom-client.ts';
import { observeEngines, observeMedia, observeSip } from './actors/observability/observed-ports.ts';
import { openObservability } from './actors/observability/open-observability.ts';
import { createReadiness } from './actors/observability/readiness.actor.ts';
import { createSystemHealth } from './actors/observability/system-health.actor.ts';
import { openLanguage } from './actors/open-language.ts';
import { openSpeech } from './actors/open-speech.ts';
import { openTelephony } from './actors/open-telephony.ts';
import { startEraser } from './actors/privacy/eraser.actor.ts';
import { startRetention } from './actors/retention.ts';
import type { ServiceDns } from './actors/service-dns.ts';
import { createWebhookDesk } from './actors/webhooks/webhook-desk.actor.ts';
import { type Config, ConfigError, describeConfig, loadConfig, wantsHelp } from './config.ts';
import { diagnoseRunning } from './diagnosis/diagnose-running.ts';
import { signedMediaUrl } from './http/playback.ts';
import { readInboundAnswer } from './http/schemas/inbound-rule.ts';
import { normaliseCallable } from './http/schemas/phone-number.ts';
import { createHttpServer } from './http/server.ts';
import { openLanguageModels } from './language/open-language-models.ts';
import { loadTokenizer } from './language/tokens.ts';
import { createTranscriptRefiner } from './language/transcript-refiner.ts';
import { createLogger, type Logger } from './logging.ts';
import { TandemError } from './machines/errors.ts';
import { openMedia } from './media/open-media.ts';
import { systemClock as clock } from './runtime/clock.ts';
import { replaceFetchTransport } from './runtime/fetch-transport.ts';
import { createSealingKeys } from './runtime/sealed-file/format.ts';
import { TANDEM_VERSION } from './runtime/version.ts';
import { LATE } from './runtime/waiting.ts';
import { openSip } from './sip/open-sip.ts';
import { SipError } from './sip/sip-error.ts';
import { openHepSender } from './sip/trace/hep-sender.ts';
import type { CallMessage } from './sip/trace/wire-message.ts';
import { openSpeechEngines } from './speech/open-speech-engines.ts';
import type { DataFolder } from './storage/data-folder.ts';
import type { ObjectStore } from './storage/objects.ts';
import { openStorage } from './storage/open-storage.ts';
import { createLoginLink, OWNER_LINK_MS } from './storage/queries/login-links.ts';
import { hasPassword } from './storage/queries/users.ts';
import { derivedKey, URL_SIGNING } from './storage/secrets.ts';

export interface Tandem {
  /** Such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /** Address of the embedded SIP server; null with a drachtio-server. */
  readonly sip: { host: string; port: number } | null;
  readonly workspaceId: string;
  readonly ownerUserId: number;
  /** The API key created by this start; null if one exists or is configured. */
  readonly mintedApiKey: string | null;
  /** Creates a one-time login for the owner and returns its path; null once the owner has a password. */
  createOwnerLogin(): Promise<string | null>;
  /** Steps of the start in order, with their durations. */
  readonly steps: { name: string; ms: number }[];
  readonly dataFolder: DataFolder;
  readonly databaseUrl: string;
  /** Probes every trunk now instead of at the next interval. */
  probeTrunks(): Promise<void>;
  /** Current quality of a live call's legs; null if the call is not live on this node. */
  qualityOf(callId: string): Promise<PublicCall['quality']>;
  /** Drains: live calls continue for up to `graceMs`, then everything closes in reverse order of its start. */
  stop(options?: { graceMs?: number }): Promise<void>;
  /** Part that `stop` waits for: `calls`, then each step of the start from the last to the first. */
  readonly closing: string;
  /** Resolves with the reason when an irreplaceable part is lost. The owner should then stop and start again. */
  readonly broken: Promise<string>;
}

export interface StartOptions {
  logger: Logger;
  onStep?: (step: { name: string; ms: number }) => void;
  /** Resolves the hosts of callbacks and trunks. Default: DNS. */
  resolve?: Resolve;
  /** Queries NAPTR and SRV records of trunks. Default: DNS. */
  services?: ServiceDns;
  /** Loads speech engines in the background, so that the first request is fast. Default true. */
  warmUp?: boolean;
}

/** Leaves the CPU to the first requests. A server that stops at once never warms up. */
const WARM_UP_DELAY_MS = 10_000;

/**
 * Opens every part after those it depends on. HTTP comes last, after reconciling the calls of earlier boots. If one
 * part fails to open, the others are closed again.
 */
export async function startTandem(
  config: Config,
  { logger, onStep, resolve, services, warmUp = true }: StartOptions,
): Promise<Tandem> {
  const { steps, step: measureStep } = stopwatch(onStep);
  const broken = Promise.withResolvers<string>();
  let isClosing = false;
  const onLost = (reason: string) => {
    if (!isClosing) broken.resolve(reason);
  };
  const opened = new AsyncDisposableStack();
  let closing = 'calls';
  const step = (name: string) => {
    measureStep(name);
    // Parts close in reverse order, so this comes before the parts of this step.
    opened.defer(() => {
      closing = name;
    });
  };
  let closed: Promise<void> | null = null;
  const closeAll = () => {
    isClosing = true;
    closed ??= opened.disposeAsync().catch((error) => logger.error({ err: error }, 'a part did not close cleanly'));
    return closed;
  };
  try {
    await replaceFetchTransport();
    if (config.llmBaseUrl ?? config.llmModelPath) loadTokenizer();
    // Engines load while storage and SIP start.
    const startingEngines = inBackground(openSpeechEngines(config, { logger }));
    opened.defer(async () => (await startingEngines.catch(() => null))?.[Symbol.asyncDispose]());
    const { observer, counted, tracing } = opened.use(await openObservability(config, { logger }));
    const storage = opened.use(await openStorage(config, { version: TANDEM_VERSION, logger, onLost }));
    const { folder, databaseUrl, sql, objects, secrets, jobs, limits, owner } = storage;
    step('storage');

    const { listening, webRtc, ...media } = opened.use(openMedia(config, { logger }));
    const mediaPlane = observeMedia(media.mediaPlane, observer);
    step('media');

    const callTrace = opened.use(openCallTrace({ sql, percent: config.sipTrace, clock, logger }));
    const { hepCollector: collector, hepCaptureId: captureId } = config;
    const hep = collector && opened.use(openHepSender({ collector, captureId, logger }));
    const onMessage = (config.sipTrace > 0 || hep) && {
      onMessage(message: CallMessage) {
        callTrace.add(message);
        hep?.send(message);
      },
    };
    const sip = opened.use(
      await openSip(config, { logger, onLost, ...onMessage }).catch((error) => {
        nameTheSetting(error);
        return nameThePort({ SIP_PORT: config.sipPort, SIP_TLS_PORT: config.sipTlsPort }, 'SIP_HOST')(error);
      }),
    );
    step('sip');

    const models = await openLanguageModels(config, {
      clock,
      onTrouble: (detail) => logger.warn({ detail }, 'language model process ended'),
    });
    opened.defer(() => models.close());
    const engines = observeEngines(await startingEngines, observer);
    step('speech');

    const allowCidrs = parseCidrs(config.callbackAllowCidrs);
    const lookUp = resolve && { resolve };
    const deliverer = createDeliverer({
      ...{ store: createDeliveryStore(sql), jobs: await jobs.open('deliveries'), secrets, allowCidrs, logger },
      onAttempt: observer.deliveryAttempted,
      ...lookUp,
    });
    opened.defer(() => deliverer.close());
    const inspect = logger.isLevelEnabled('debug') ? { inspect: inspectTransitions(logger) } : {};
    const shared = {
      storage,
      mediaPlane,
      listening,
      webRtc,
      engines,
      deliverer,
      allowCidrs,
      clock,
      logger,
      ...inspect,
      ...lookUp,
    };
    const urlSigningSecret = derivedKey(folder.masterKey, URL_SIGNING);
    const publicUrl = config.publicUrl?.replace(/\/$/, '') ?? null;
    let ownUrl = '';
    const speech = opened.use(
      await openSpeech({
        ...shared,
        // Without a language model, transcripts are not refined.
        refine: (config.llmBaseUrl ?? config.llmModelPath) ? createTranscriptRefiner(models) : null,
        audioUrl: (object) => signedMediaUrl({ ...object, baseUrl: publicUrl ?? ownUrl, secret: urlSigningSecret }),
      }),
    );
    const { voices, tts, liveStt, transcriber } = speech;
    const sealingKeys = createSealingKeys(config.recordingKey, config.previousRecordingKeys);
    const { dailySpendCapNano, blockedPrefixes, destinationLimits } = config;
    const callingLimits = { dailySpendCapNano, blockedPrefixes, destinationLimits };
    const telephony = opened.use(
      await openTelephony({
        ...{ ...shared, sip: observeSip(sip.gateway, observer), voices, sealingKeys, observer },
        callingLimits,
        placementsPerMinute: config.placementsPerMinute,
        recordingDays: config.recordingDays,
        readDialedNumber: (dialed) => normaliseCallable(dialed, config.numberPlan),
        readInboundAnswer: (answer) => readInboundAnswer(answer, config.numberPlan),
        trunkAllowCidrs: parseCidrs(config.trunkAllowCidrs),
        ...(services && { services }),
      }),
    );
    const { dialer, liveCalls, phones, numberVerifier, registry, trunkWatch, trunkTargets, recordings } = telephony;
    await deliverer.start();
    const days = {
      ...{ deliveries: config.deliveryDays, call_events: config.callEventDays, transcripts: config.transcriptDays },
      ...{ sip_messages: config.sipTraceDays, quality: config.qualityDays },
    };
    opened.use(startRetention({ sql, days, clock, logger }));
    const eraser = opened.use(startEraser({ ...folder, sql, objects, clock, logger }));
    const { chat, judge, memory, documents } = opened.use(await openLanguage(config, { ...shared, models }));
    storage.nodes.reportBy(telephony.ownDialer.report);
    await storage.nodes.start();
    step('actors');

    const readiness = createReadiness({
      ...{ sql, jobs, sip: sip.gateway, mediaPlane, engines, dialer: telephony.ownDialer },
      dataDir: folder.path,
    });
    const metrics = createMetrics({
      ...{ counted, calls: registry, mediaPlane, jobs, sql, readiness, logger },
      recognition: engines.recognition,
    });
    const systemHealth = createSystemHealth({
      ...{ sql, self: folder, readiness, mediaPlane, engines, models, jobs, clock, logger },
      ...{ modelsDir: config.modelsDir, version: TANDEM_VERSION },
      diagnose: () => diagnoseRunning(config, { sql, engines, models }),
    });
    const http = createHttpServer({
      ...{ readiness, systemHealth, metrics, tracing },
      metricsAccess: { token: config.metricsToken, allowCidrs: config.metricsAllowCidrs },
      ...{
        sql,
        objects,
        secrets,
        limits,
        trunkTargets,
        trunkProber: trunkWatch,
        dialer,
        liveCalls,
        phones,
        numberVerifier,
        recordings,
        eraser,
        voices,
        liveStt,
        transcriber,
        speech: tts,
      },
      ...{ models, chat, judge, memory, documents, urlSigningSecret, publicUrl, logger },
      previousUrlSecrets: config.previousSecretKeys.map((key) => derivedKey(key, URL_SIGNING)),
      webhooks: createWebhookDesk({ sql, secrets, deliverer, allowCidrs, ...lookUp }),
      callingLimits,
      quotas: {
        workspacesPerUser: config.quotaWorkspaces,
        trunksPerWorkspace: config.quotaTrunks,
        numbersPerWorkspace: config.quotaNumbers,
      },
      registration: config.registration,
      numberPlan: config.numberPlan,
      corsOrigins: config.corsOrigins,
      trustedProxies: config.trustedProxies,
      stripeWebhookSecret: config.stripeWebhookSecret,
      objectOrigin: await presignedOrigin(objects),
      hasLanguageModel: (config.llmBaseUrl ?? config.llmModelPath) !== null,
    });
    opened.defer(() => http.close());
    await http.listen({ host: config.host, port: config.port }).catch(nameThePort({ PORT: config.port }, 'HOST'));
    ownUrl = urlOf(http.server.address() as AddressInfo);
    step('http');
    if (warmUp) {
      const warmingUp = setTimeout(() => {
        listening.warmUp();
        engines.warmUp();
      }, WARM_UP_DELAY_MS);
      opened.defer(() => clearTimeout(warmingUp));
    }
    // A model file takes a while to load.
    void inBackground(models.list());

    return {
      ...{ steps, databaseUrl, url: ownUrl, sip: sip.address, dataFolder: folder, broken: broken.promise },
      ...{ workspaceId: owner.workspaceId, ownerUserId: owner.userId, mintedApiKey: owner.mintedApiKey },
      qualityOf: async (callId) => (await registry.get(callId)?.media?.quality()) ?? null,
      async createOwnerLogin() {
        if (await hasPassword(sql, owner.userId)) return null;
        const link = { userId: owner.userId, lifetimeMs: OWNER_LINK_MS, now: new Date() };
        return `/console/login?token=${(await createLoginLink(sql, link)).token}`;
      },
      probeTrunks: () => trunkWatch.probeAll(),
      get closing() {
        return closing;
      },
      async stop({ graceMs = 0 } = {}) {
        await telephony.drain(graceMs);
        await closeAll();
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

/** Origin of presigned object URLs, for the console's content security policy. Null: this server delivers objects. */
async function presignedOrigin(objects: ObjectStore): Promise<string | null> {
  const now = new Date();
  const url = await objects.presign({ key: 'recordings/any.wav', now, expiresAt: new Date(now.getTime() + 60_000) });
  return url === null ? null : new URL(url).origin;
}

function stopwatch(onStep: StartOptions['onStep']) {
  const steps: Tandem['steps'] = [];
  let lastStepAt = performance.now();
  const step = (name: string) => {
    const now = performance.now();
    const entry = { name, ms: Math.round(now - lastStepAt) };
    lastStepAt = now;
    steps.push(entry);
    onStep?.(entry);
  };
  return { steps, step };
}

/** Avoids an unhandled rejection of a promise that is awaited later or whose failure shows elsewhere. */
function inBackground<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

function urlOf({ address, family, port }: AddressInfo): string {
  const host = address === '0.0.0.0' || address === '::' ? '127.0.0.1' : address;
  return `http://${family === 'IPv6' && host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Names the setting of an unavailable port: the one whose port ends the message, or the first. Or that of the address. */
function nameThePort(ports: Record<string, number>, host: string): (error: Error) => never {
  return (error) => {
    const trouble = `${(error as NodeJS.ErrnoException).code} ${error.message}`;
    if (/EADDRNOTAVAIL|ENOTFOUND/.test(trouble)) {
      throw new ConfigError(`This machine has no such address (${error.message}): set ${host} to one that it has.`);
    }
    if (!/EADDRINUSE|EACCES/.test(trouble)) throw error;
    const settings = Object.entries(ports);
    const [variable, port] = settings.find(([, each]) => error.message.endsWith(`:${each}`)) ?? settings[0]!;
    throw new ConfigError(`Port ${port} cannot be opened (${error.message}): set ${variable} to a free one.`);
  };
}

/** @throws ConfigError if the drachtio-server rejects our secret, or the files of the TLS settings cannot be used */
function nameTheSetting(error: unknown): void {
  if (!(error instanceof SipError)) return;
  if (error.code === 'server.unusable_files') throw new ConfigError(error.message);
  if (error.code !== 'server.secret_refused') return;
  throw new ConfigError(
    'The drachtio-server refuses our secret. Set DRACHTIO_SECRET to the secret of its configuration file.',
  );
}

/** Longest that live calls continue after SIGTERM or SIGINT. A second signal hangs them up at once. */
const DRAIN_MS = 30_000;
/**
 * A part that waits for a database which never answers must not keep the process. Shorter than the grace period of
 * `docker-compose.yml`, whose end is a SIGKILL.
 */
const STOP_MS = 57_000;
/** From the second signal. Longer than the wait for placements and hang-ups. */
const HURRIED_STOP_MS = 25_000;

export interface ServeOptions {
  config: Config;
  /** Default: logs to standard output at the configured level. */
  createLogger?: typeof createLogger;
  /** Called once everything is up. Default: prints the new API key and how to open the console. */
  onReady?: (tandem: Tandem, config: Config) => Promise<void> | void;
}

/** Runs until a signal, a lost part or a failed start. The exit code tells them apart. */
export async function serve({
  config,
  createLogger: makeLogger = createLogger,
  onReady = printAccess,
}: ServeOptions): Promise<void> {
  const logger = makeLogger({ level: config.logLevel });
  const signals = listenForSignals();
  const starting = startTandem(config, { logger, onStep: ({ name, ms }) => logger.info({ name, ms }, 'started') });
  const hurried = signals.second.then(() => null);
  const stopBy = signals.first.then(() => pause(STOP_MS, LATE));
  const tandem = await Promise.race([starting, hurried, signals.first.then(() => pause(DRAIN_MS, null))]);
  if (tandem === null) {
    process.stderr.write('Stopped before the start was complete.\n');
    // The processes that were started end with this one.
    process.exit(1);
  }
  logger.info({ url: tandem.url, sip: tandem.sip, workspaceId: tandem.workspaceId }, 'Tandem is ready');
  await Promise.race([onReady(tandem, config), signals.first]);

  const lost = tandem.broken.then((reason) => {
    logger.fatal({ reason }, 'lost a part that cannot be replaced while running');
    return 1;
  });
  const exitCode = await Promise.race([signals.first.then(() => 0), lost]);
  if (exitCode === 0) logger.info({ drainMs: DRAIN_MS }, 'draining: live calls may finish, a second signal ends them');
  const stopped = [tandem.stop({ graceMs: exitCode === 0 ? DRAIN_MS : 0 }), hurried.then(() => tandem.stop())];
  const late = [exitCode === 0 ? stopBy : pause(STOP_MS, LATE), hurried.then(() => pause(HURRIED_STOP_MS, LATE))];
  if ((await Promise.race([...stopped, ...late])) === LATE) {
    logger.fatal({ part: tandem.closing }, 'stops although a part has not closed in time');
    process.exit(1);
  }
  logger.info({}, 'Tandem has stopped');
  process.exit(exitCode);
}

/**
 * Prints the API key and the console link. It does not log them, because the logger may send lines elsewhere. It prints
 * even if standard output is not a terminal, because most people look in `docker logs`. The link works once and expires
 * after a day. None is created with TANDEM_OWNER_PASSWORD, or once the owner has set a password.
 */
async function printAccess(tandem: Tandem, { publicUrl }: Config): Promise<void> {
  const base = publicUrl?.replace(/\/$/, '') ?? tandem.url;
  const lines = tandem.mintedApiKey ? [`Your API key, shown this once: ${tandem.mintedApiKey}`, ''] : [];
  lines.push(`Console: ${base}/`);
  const login = await tandem.createOwnerLogin();
  if (login !== null) lines.push(`Log in once, within a day: ${base}${login}`);
  process.stdout.write(`\n${lines.join('\n')}\n\n`);
}

/** Counts SIGTERM and SIGINT, also during the start, instead of letting the first one end the process. */
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

/** Implements `npm start`. */
async function main(argv: readonly string[]): Promise<void> {
  if (wantsHelp(argv)) process.stdout.write(describeConfig());
  else await serve({ config: loadConfig(process.env, argv) });
}

if (import.meta.main) {
  main(process.argv.slice(2)).catch((error: unknown) => {
    // An expected error says what to do. Any other is a defect and needs its stack.
    const isExpected = error instanceof ConfigError || error instanceof TandemError;
    process.stderr.write(`${isExpected ? error.message : ((error as Error).stack ?? error)}\n`);
    process.exit(1);
  });
}
