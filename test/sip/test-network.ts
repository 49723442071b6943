import { type EmbeddedSipServer, startEmbeddedSipServer } from '../../sip/embedded/embedded-sip-server.ts';
import type { SipTimers } from '../../sip/embedded/sip-timers.ts';
import type { TlsSettings } from '../../sip/embedded/transport/tls-security.ts';
import {
  createDrachtioGateway,
  type DrachtioGateway,
  type DrachtioGatewayOptions,
} from '../../sip/sip-gateway.drachtio.ts';
import { openAudioSource } from '../softphone/audio-source.ts';
import {
  type LoopbackCarrier,
  type LoopbackCarrierOptions,
  startLoopbackCarrier,
} from '../softphone/loopback-carrier.ts';
import { type Softphone, type SoftphoneOptions, startSoftphone } from '../softphone/softphone.ts';
import { Voice } from '../softphone/voice.ts';
import { DRACHTIO, type DrachtioEndpoint, sipAddressOf } from './drachtio-endpoint.ts';

export const CUSTOMER_NUMBER = '+919876543210';
const SECRET = 'between-these-two';

export async function startTestSipServer(
  timers: Partial<SipTimers> = {},
  tls?: TlsSettings,
): Promise<EmbeddedSipServer> {
  return await startEmbeddedSipServer({
    sipHost: '127.0.0.1',
    sipPort: 0,
    transports: ['udp', 'tcp'],
    secret: SECRET,
    timers,
    ...(tls ? { tls } : {}),
  });
}

/** Gateway, SIP server, carrier and phones on loopback; `stop` closes them in reverse order. */
export class TestNetwork {
  readonly #cleanUps: (() => Promise<unknown>)[] = [];
  gateway!: DrachtioGateway;
  server!: EmbeddedSipServer;
  sipAddress!: { host: string; port: number };

  static async start(
    options: Partial<DrachtioGatewayOptions> = {},
    timers: Partial<SipTimers> = {},
    tls?: TlsSettings,
  ) {
    const network = new TestNetwork();
    if (DRACHTIO !== null) return await network.connectTo(DRACHTIO, options);
    const server = await startTestSipServer(timers, tls);
    network.cleanUp(() => server.close());
    return await network.connectToServer(server, options);
  }

  /** With a server that outlives it, since starting one costs more CPU time than a call. */
  static async on(server: EmbeddedSipServer): Promise<TestNetwork> {
    const network = new TestNetwork();
    return DRACHTIO === null ? await network.connectToServer(server, {}) : await network.connectTo(DRACHTIO, {});
  }

  async connectToServer(server: EmbeddedSipServer, options: Partial<DrachtioGatewayOptions>): Promise<this> {
    this.server = server;
    const { controlHost, controlPort, sipHost, sipPort } = server;
    this.sipAddress = { host: sipHost, port: sipPort };
    this.gateway = await createDrachtioGateway({ host: controlHost, port: controlPort, secret: SECRET, ...options });
    this.cleanUp(() => this.gateway.close());
    return this;
  }

  async connectTo(endpoint: DrachtioEndpoint, options: Partial<DrachtioGatewayOptions>): Promise<this> {
    this.sipAddress = await sipAddressOf(endpoint);
    this.gateway = await createDrachtioGateway({ ...endpoint, ...options });
    this.cleanUp(() => this.gateway.close());
    return this;
  }

  cleanUp(act: () => Promise<unknown>): void {
    this.#cleanUps.push(act);
  }

  async carrier(options: LoopbackCarrierOptions = {}): Promise<LoopbackCarrier> {
    const carrier = await startLoopbackCarrier(options);
    this.cleanUp(() => carrier.stop());
    return carrier;
  }

  async phone(options: Partial<SoftphoneOptions> = {}): Promise<Softphone> {
    const phone = await startSoftphone({ name: 'customer', user: CUSTOMER_NUMBER, ...options });
    this.cleanUp(() => phone.stop());
    return phone;
  }

  /** Audio endpoint in place of the media plane. */
  async voice(frequencyHz: number): Promise<Voice> {
    const source = await openAudioSource({ kind: 'tone', frequencyHz });
    const voice = await Voice.open({ host: '127.0.0.1', source });
    this.cleanUp(() => voice.close());
    return voice;
  }

  async stop(): Promise<void> {
    for (const act of this.#cleanUps.splice(0).reverse()) await act();
  }
}
