import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';

/**
 * What Tandem uses of drachtio-srf 5, as its code does it: its own types promise methods it lacks and hide fields
 * that it has.
 */
export interface SrfClient extends EventEmitter {
  connect(options: { host: string; port: number; secret: string; reconnect: { maxAttempts: number } }): void;
  use(handler: SrfHandler): void;
  /** Also asks the server to route requests of this method to us. */
  use(method: 'invite' | 'options', handler: SrfHandler): void;
  request(uri: string, options: SrfRequestOptions, callback: (error: unknown, sent?: SrfSentRequest) => void): void;
  /** Private; `srf-connection.ts` alone looks inside. */
  _app: { client: { wp: SrfWire } };
}

export type SrfHandler = (request: SrfReceivedRequest, response: SrfReply, next: () => void) => void;

export interface SrfRequestOptions {
  method: string;
  headers?: Record<string, string>;
  body?: string;
  /** Next hop, in place of the request URI. */
  proxy?: string;
  /** Sends inside this dialog; the URI is then filled in by the server. */
  stackDialogId?: string;
  /** Of the INVITE that a CANCEL is for. */
  stackTxnId?: string;
}

interface SrfMessage {
  body?: string;
  /** Undefined when absent. Repeated headers are joined with commas. */
  get(header: string): string | undefined;
  has(header: string): boolean;
}

/** A request that the server has sent for us, as it went out. */
export interface SrfSentRequest extends SrfMessage, EventEmitter {
  uri: string;
  /** Names the transaction to the server. */
  stackTxnId: string | undefined;
  cancel(options: { headers: Record<string, string> }, callback: (error: unknown) => void): void;
}

export interface SrfResponse extends SrfMessage {
  status: number;
  reason: string;
  /** Empty in a response that the server made up (408, 503). */
  source_address: string;
  source_port: number;
  protocol: string;
  stackDialogId: string | undefined;
}

/** Sends the ACK of a 2xx, or the PRACK of a reliable provisional response. */
export type SrfAcknowledge = () => void;

export interface SrfReceivedRequest extends SrfMessage {
  method: string;
  uri: string;
  /** `application`: made by the server itself, such as the BYE of a dialog it gave up. */
  source: 'network' | 'application';
  source_address: string;
  source_port: number;
  stackDialogId: string | undefined;
  /** The peer cancels its INVITE, which the server refuses then. */
  on(event: 'cancel', listener: () => void): void;
}

export interface SrfReply {
  send(status: number, options: { headers?: Record<string, string>; body?: string }): void;
}

export interface SrfWire extends EventEmitter {
  closing?: boolean;
  send(socket: Socket, message: string): string;
  _onData(socket: Socket, chunk: Buffer): void;
}
