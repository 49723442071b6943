/** The used part of `sdp-transform`, which ships no types. Numbers that do not fit are strings. */
declare module 'sdp-transform' {
  export interface Connection {
    version: number;
    ip: string;
  }

  export interface MediaDescription {
    type?: string;
    port?: number;
    protocol?: string;
    /** Space separated formats; a number if there is only one. */
    payloads?: string | number;
    connection?: Connection;
    rtp: { payload: number; codec: string; rate?: number; encoding?: number | string }[];
    fmtp: { payload: number; config: string }[];
    rtcp?: { port: number; netType?: string; ipVer?: number; address?: string };
    /** Only for writing: parsing drops session parameters. */
    crypto?: { id: string; suite: string; config: string }[];
    direction?: string;
    ptime?: number;
  }

  export interface SessionDescription {
    version?: number;
    name?: string;
    origin?: {
      username: string;
      sessionId: number | string;
      sessionVersion: number;
      netType: string;
      ipVer: number;
      address: string;
    };
    connection?: Connection;
    timing?: { start: number; stop: number };
    direction?: string;
    media: MediaDescription[];
  }

  export function parse(sdp: string): SessionDescription;
  export function write(session: SessionDescription): string;
}
