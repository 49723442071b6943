import { ActionIcon, Group, Input, Radio, ScrollArea, SegmentedControl, Select, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { Play } from 'lucide-react';
import { useMemo, useRef, useState } from 'react';
import { api, dataOf } from '../../app/api.ts';
import { useUrlSearch } from '../../app/url-search.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { notifyFailed } from '../../parts/notify.ts';
import { speechText } from '../../text/speech.ts';
import { type ListedVoice, type Tier, voicesQuery } from '../queries.ts';

/** Voices by tier, language and name, each with a sample. The choice is in the address (`?voice=`). */
export function VoicePicker() {
  const [search, change] = useUrlSearch();
  const [wanted, setWanted] = useState('');
  const tier: Tier = search.tier === 'fast' ? 'fast' : 'quality';
  const voices = useQuery(voicesQuery(tier));
  const languages = useMemo(() => languagesOf(voices.data ?? []), [voices.data]);
  return (
    <Input.Wrapper label={speechText.voice} labelElement="div">
      <SegmentedControl
        aria-label={speechText.tier}
        fullWidth
        size="xs"
        value={tier}
        onChange={(value) => change({ tier: value === 'fast' ? value : undefined, voice: undefined, lang: undefined })}
        data={Object.entries(speechText.tiers).map(([value, label]) => ({ value, label }))}
      />
      <Group gap="xs" my="xs" grow wrap="nowrap">
        <Select
          size="xs"
          aria-label={speechText.language}
          placeholder={speechText.allLanguages}
          data={languages}
          value={search.lang ?? null}
          onChange={(lang) => change({ lang: lang ?? undefined })}
          searchable
          clearable
          clearButtonProps={{ 'aria-label': speechText.allLanguages }}
        />
        <TextInput
          size="xs"
          type="search"
          aria-label={speechText.findVoice}
          placeholder={speechText.findVoice}
          value={wanted}
          onChange={(event) => setWanted(event.currentTarget.value)}
        />
      </Group>
      <Loaded query={voices}>
        {(all) => (
          <VoiceList
            voices={all.filter((voice) => matches(voice, { language: search.lang, wanted }))}
            chosen={search.voice ?? null}
            onChoose={(voice) => change({ voice })}
          />
        )}
      </Loaded>
    </Input.Wrapper>
  );
}

interface VoiceListProps {
  voices: readonly ListedVoice[];
  chosen: string | null;
  onChoose: (id: string) => void;
}

function VoiceList({ voices, chosen, onChoose }: VoiceListProps) {
  const player = useRef<HTMLAudioElement>(null);
  const sample = useMutation({
    mutationFn: async (id: string) => {
      const { sample_url: url } = await dataOf(api.GET('/voices/{id}', { params: { path: { id } } }));
      if (url === null || player.current === null) throw new Error(speechText.noSample);
      // The server may be configured with another host than this page's.
      const { pathname, search } = new URL(url);
      player.current.src = pathname + search;
      await player.current.play();
    },
    onError: notifyFailed,
  });
  if (voices.length === 0) return <Text size="sm">{speechText.noVoices}</Text>;
  return (
    <>
      {/* biome-ignore lint/a11y/useMediaCaption: a sample of a voice has no other content */}
      <audio ref={player} hidden />
      <ScrollArea.Autosize
        mah={240}
        type="auto"
        viewportProps={{ tabIndex: 0, role: 'region', 'aria-label': speechText.voices }}
      >
        <Radio.Group value={chosen} onChange={onChoose} aria-label={speechText.voice}>
          {voices.map((voice) => (
            <div className="voice-row" key={voice.voice_id}>
              <Radio
                flex={1}
                size="xs"
                value={voice.voice_id}
                label={voice.name}
                description={aboutVoice(voice)}
                styles={{ body: { alignItems: 'center' } }}
              />
              <ActionIcon
                variant="subtle"
                size="sm"
                loading={sample.isPending && sample.variables === voice.voice_id}
                onClick={() => sample.mutate(voice.voice_id)}
                aria-label={speechText.listen(voice.name)}
              >
                <Play size={14} aria-hidden />
              </ActionIcon>
            </div>
          ))}
        </Radio.Group>
      </ScrollArea.Autosize>
      <Text size="xs" c="dimmed" mt={4}>
        {speechText.samplesFree}
      </Text>
    </>
  );
}

function aboutVoice({ labels, wpm }: ListedVoice): string {
  const gender = speechText.genders[labels.gender];
  return [labels.language_name, gender, ...(wpm === null ? [] : [speechText.wpm(wpm)])].join(' · ');
}

function languagesOf(voices: readonly ListedVoice[]) {
  const names = new Map(voices.map(({ labels }) => [labels.language, labels.language_name]));
  return [...names]
    .map(([value, label]) => ({ value, label }))
    .sort((one, other) => one.label.localeCompare(other.label));
}

function matches({ name, labels }: ListedVoice, filter: { language: string | undefined; wanted: string }): boolean {
  const { language, wanted } = filter;
  const text = `${name} ${labels.language_name} ${labels.accent}`.toLowerCase();
  return (language === undefined || labels.language === language) && text.includes(wanted.trim().toLowerCase());
}
