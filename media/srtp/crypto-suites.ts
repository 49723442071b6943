import type { SrtpSuite } from '../../machines/events.ts';

/** Lengths of a suite in bytes. */
export interface SuiteParameters {
  cipher: 'AES-CM' | 'AES-GCM';
  keyBytes: 16 | 32;
  saltBytes: 12 | 14;
  rtpTagBytes: 4 | 10 | 16;
  rtcpTagBytes: 10 | 16;
}

/** RFC 4568 §6.2 and RFC 7714 §12. Only RTP has short tags: SRTCP keeps 80 bits (RFC 4568 §6.2.2). */
export const SUITES: Readonly<Record<SrtpSuite, SuiteParameters>> = {
  AES_CM_128_HMAC_SHA1_80: { cipher: 'AES-CM', keyBytes: 16, saltBytes: 14, rtpTagBytes: 10, rtcpTagBytes: 10 },
  AES_CM_128_HMAC_SHA1_32: { cipher: 'AES-CM', keyBytes: 16, saltBytes: 14, rtpTagBytes: 4, rtcpTagBytes: 10 },
  AEAD_AES_128_GCM: { cipher: 'AES-GCM', keyBytes: 16, saltBytes: 12, rtpTagBytes: 16, rtcpTagBytes: 16 },
  AEAD_AES_256_GCM: { cipher: 'AES-GCM', keyBytes: 32, saltBytes: 12, rtpTagBytes: 16, rtcpTagBytes: 16 },
};

/** E flag and index at the end of an SRTCP packet, before the tag with AES-CM and after it with GCM. */
export const RTCP_INDEX_BYTES = 4;

/** The most bytes that protection adds to a packet. */
export const MOST_SRTP_OVERHEAD_BYTES = 16 + RTCP_INDEX_BYTES;
