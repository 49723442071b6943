import { Group, Input, SegmentedControl, Select, Slider, Switch, Textarea } from '@mantine/core';
import { useUrlSearch } from '../../app/url-search.ts';
import { speechText } from '../../text/speech.ts';
import { useDraft } from '../draft.ts';
import { canGrow } from './growing-audio.ts';
import {
  ENCODINGS,
  type Encoding,
  lengthOf,
  MAX_CHARACTERS,
  RATES_HZ,
  type RateHz,
  type SpeechForm,
} from './speech-request.ts';
import { VoicePicker } from './voice-picker.tsx';

type SpeechDraft = Omit<SpeechForm, 'text' | 'voiceId'> & { texts: Record<SpeechForm['mode'], string> };

const INITIAL: SpeechDraft = {
  mode: 'text',
  texts: { text: speechText.textExample, ssml: speechText.ssmlExample },
  speed: 1,
  pitch: 0,
  stability: 50,
  encoding: 'MP3',
  rateHz: 24_000,
  isStreamed: true,
};

export function useSpeechForm() {
  const [search] = useUrlSearch();
  const [draft, setDraft] = useDraft('speech', INITIAL);
  const set = (changes: Partial<SpeechDraft>) => setDraft({ ...draft, ...changes });
  const { texts, ...options } = draft;
  const form: SpeechForm = {
    ...options,
    text: texts[draft.mode],
    voiceId: search.voice ?? null,
    pitch: draft.mode === 'ssml' ? 0 : draft.pitch,
    isStreamed: draft.isStreamed && draft.encoding === 'MP3' && canGrow(),
  };
  return { form, fields: <Fields draft={draft} set={set} /> };
}

interface FieldsProps {
  draft: SpeechDraft;
  set: (changes: Partial<SpeechDraft>) => void;
}

function Fields({ draft, set }: FieldsProps) {
  const { mode, encoding } = draft;
  const isStreamable = encoding === 'MP3' && canGrow();
  return (
    <>
      <TextField draft={draft} set={set} />
      <VoicePicker />
      <Sliders draft={draft} set={set} isSsml={mode === 'ssml'} />
      <Group gap="xs" grow wrap="nowrap">
        <Select
          label={speechText.format}
          data={ENCODINGS.map((value) => ({ value, label: speechText.formats[value] }))}
          value={encoding}
          onChange={(value) => set({ encoding: (value ?? 'MP3') as Encoding })}
          allowDeselect={false}
        />
        <Select
          label={speechText.rate}
          data={RATES_HZ.map((value) => ({ value: String(value), label: speechText.hz(value) }))}
          value={String(draft.rateHz)}
          onChange={(value) => set({ rateHz: Number(value) as RateHz })}
          allowDeselect={false}
        />
      </Group>
      <Switch
        label={speechText.streamed}
        description={isStreamable ? undefined : speechText.streamedHint}
        checked={draft.isStreamed && isStreamable}
        disabled={!isStreamable}
        onChange={(event) => set({ isStreamed: event.currentTarget.checked })}
      />
    </>
  );
}

function TextField({ draft: { mode, texts, pitch }, set }: FieldsProps) {
  const text = texts[mode];
  const length = lengthOf({ mode, text, pitch });
  const isTooLong = length > MAX_CHARACTERS;
  return (
    <div>
      <SegmentedControl
        aria-label={speechText.mode}
        fullWidth
        mb="xs"
        value={mode}
        onChange={(value) => set({ mode: value as SpeechForm['mode'] })}
        data={[
          { value: 'text', label: speechText.text },
          { value: 'ssml', label: speechText.ssml },
        ]}
      />
      <Textarea
        aria-label={mode === 'ssml' ? speechText.ssml : speechText.text}
        description={speechText.length(length, MAX_CHARACTERS)}
        inputWrapperOrder={['input', 'description', 'error']}
        error={isTooLong && speechText.tooLong(MAX_CHARACTERS)}
        value={text}
        onChange={(event) => set({ texts: { ...texts, [mode]: event.currentTarget.value } })}
        styles={mode === 'ssml' ? { input: { fontFamily: 'var(--mantine-font-family-monospace)' } } : {}}
        autosize
        minRows={4}
        maxRows={12}
        spellCheck={mode === 'text'}
      />
    </div>
  );
}

function Sliders({ draft, set, isSsml }: FieldsProps & { isSsml: boolean }) {
  return (
    <>
      <Labeled label={speechText.speed}>
        <Slider
          thumbLabel={speechText.speed}
          min={0.5}
          max={2}
          step={0.05}
          value={draft.speed}
          onChange={(speed) => set({ speed })}
          label={(value) => `${value.toFixed(2)}x`}
        />
      </Labeled>
      <Labeled label={speechText.pitch} {...(isSsml && { description: speechText.pitchInSsml })}>
        <Slider
          thumbLabel={speechText.pitch}
          min={-6}
          max={6}
          step={1}
          value={isSsml ? 0 : draft.pitch}
          disabled={isSsml}
          onChange={(pitch) => set({ pitch })}
          label={speechText.semitones}
        />
      </Labeled>
      <Labeled label={speechText.stability} description={speechText.stabilityHint}>
        <Slider
          thumbLabel={speechText.stability}
          min={0}
          max={100}
          value={draft.stability}
          onChange={(stability) => set({ stability })}
        />
      </Labeled>
    </>
  );
}

function Labeled({ label, description, children }: { label: string; description?: string; children: React.ReactNode }) {
  return (
    <Input.Wrapper label={label} description={description} labelElement="div">
      {children}
    </Input.Wrapper>
  );
}
