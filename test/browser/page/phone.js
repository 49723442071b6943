// The browser side of a phone as in docs/phone.md.
import { Device } from 'mediasoup-client';

class Phone extends EventTarget {
  #socket;
  #nextId = 1;
  #waiting = new Map();
  #resumeUrl = '';
  #call = null;
  #transports = [];
  stream = null;

  constructor(url) {
    super();
    this.#connect(url);
  }

  #connect(url) {
    this.#socket = new WebSocket(url);
    this.#socket.onmessage = ({ data }) => this.#receive(JSON.parse(data), url);
    this.#socket.onclose = ({ code, reason }) => this.#tell({ type: 'closed', code, reason });
  }

  #receive(message, url) {
    if (message.type === 'reply' || (message.type === 'error' && this.#waiting.has(message.id))) {
      const { resolve, reject } = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      if (message.type === 'reply') resolve(message);
      else reject(new Error(message.message));
      return;
    }
    if (message.type === 'welcome') {
      const resume = new URL(url);
      resume.search = new URLSearchParams({ resume: message.resume_token });
      this.#resumeUrl = resume.href;
      sessionStorage.setItem('resume', resume.href);
    }
    this.#tell(message);
  }

  #tell(message) {
    this.dispatchEvent(new CustomEvent('message', { detail: message }));
  }

  request(type, fields) {
    const id = this.#nextId++;
    this.#socket.send(JSON.stringify({ id, type, ...fields }));
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  ofCall(type, fields) {
    return this.request(type, { call_id: this.#call, ...fields });
  }

  async answer(callId) {
    this.#call = callId;
    const { router_rtp_capabilities: routerRtpCapabilities } = await this.ofCall('answer');
    const device = new Device();
    await device.load({ routerRtpCapabilities });
    await this.#speak(device);
    await this.#play(device);
  }

  async #speak(device) {
    const constraints = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
    const microphone = await navigator.mediaDevices.getUserMedia({ audio: constraints });
    const { transport } = await this.ofCall('create_transport', { direction: 'send' });
    const sending = device.createSendTransport(transport);
    this.#transports.push(sending);
    this.#connectWhenAsked(sending);
    sending.on('produce', ({ rtpParameters }, resolve, reject) => {
      this.ofCall('produce', { transport_id: sending.id, rtp_parameters: rtpParameters }).then(
        ({ producer_id: id }) => resolve({ id }),
        reject,
      );
    });
    await sending.produce({ track: microphone.getAudioTracks()[0] });
  }

  async #play(device) {
    const { transport } = await this.ofCall('create_transport', { direction: 'recv' });
    const receiving = device.createRecvTransport(transport);
    this.#transports.push(receiving);
    this.#connectWhenAsked(receiving);
    const { consumer: offered } = await this.ofCall('consume', { transport_id: receiving.id });
    const consumer = await receiving.consume(offered);
    await this.ofCall('resume_consumer', { consumer_id: consumer.id });
    this.stream = new MediaStream([consumer.track]);
    await play(this.stream);
  }

  #connectWhenAsked(transport) {
    transport.on('connect', ({ dtlsParameters }, resolve, reject) => {
      this.ofCall('connect_transport', { transport_id: transport.id, dtls_parameters: dtlsParameters }).then(
        resolve,
        reject,
      );
    });
  }

  /** Simulates a short network outage. */
  dropSocket() {
    this.#socket.onclose = null;
    this.#socket.close();
  }

  comeBack() {
    this.#connect(this.#resumeUrl);
  }

  /** Simulates a change of network. */
  async restartIce() {
    for (const transport of this.#transports) {
      const { ice_parameters: iceParameters } = await this.ofCall('restart_ice', { transport_id: transport.id });
      await transport.restartIce({ iceParameters });
    }
  }

  /** Local UDP port of each transport; null without one. */
  async ports() {
    const ports = [];
    for (const transport of this.#transports) {
      const stats = await transport.getStats();
      const { selectedCandidatePairId } = [...stats.values()].find(({ type }) => type === 'transport') ?? {};
      const pair = stats.get(selectedCandidatePairId);
      ports.push(stats.get(pair?.localCandidateId)?.port ?? null);
    }
    return ports;
  }
}

/** Chromium delivers remote audio only while an element plays it. */
async function play(stream) {
  const element = new Audio();
  element.srcObject = stream;
  element.muted = true;
  await element.play();
}

let phone = null;
const messages = [];

/** API for the tests. */
globalThis.tests = {
  connect(url) {
    messages.length = 0;
    phone = new Phone(url);
    phone.addEventListener('message', ({ detail }) => {
      messages.push(detail);
      globalThis.dispatchEvent(new Event('told'));
    });
  },
  /** Resolves with the next message of a type, and drops it and earlier ones. */
  async until(type) {
    for (;;) {
      const index = messages.findIndex((message) => message.type === type);
      if (index >= 0) return messages.splice(0, index + 1).at(-1);
      await new Promise((resolve) => globalThis.addEventListener('told', resolve, { once: true }));
    }
  },
  answer: (callId) => phone.answer(callId),
  request: (type, fields) => phone.ofCall(type, fields),
  stream: () => phone.stream,
  dropSocket: () => phone.dropSocket(),
  comeBack: () => phone.comeBack(),
  /** Address that the page stored before a reload. */
  resumeUrl: () => sessionStorage.getItem('resume'),
  restartIce: () => phone.restartIce(),
  ports: () => phone.ports(),
};
