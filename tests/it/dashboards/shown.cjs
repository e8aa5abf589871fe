// Shows figures of a dashboard as Grafana does, by its own code for values:
// node shown.cjs DASHBOARD, with NODE_PATH at an installation of @grafana/data.
// Prints {title: {refId: text}}: what a stat says when only that query has the
// value 1234.5, and under "none" what it says when no query has one.

const fs = require('fs')

// The library asks a browser for its language when it is loaded.
Object.defineProperty(globalThis, 'navigator', { value: { language: 'en-US', languages: ['en-US'] }, configurable: true })
const grafana = require('@grafana/data')

// Grafana itself registers editors for these properties; to show a value their ids are enough.
const properties = ['unit', 'decimals', 'displayName', 'noValue', 'color', 'thresholds', 'mappings', 'min', 'max', 'links']
grafana.standardFieldConfigEditorRegistry.setInit(() =>
  properties.map((id) => ({ id, path: id, name: id, process: (value) => value, shouldApply: () => true }))
)

const theme = grafana.createTheme()
const replaceVariables = (text) => text

function shown(panel, answered) {
  const frames = panel.targets.map(({ refId }) => {
    const fields = [
      { name: 'Time', type: grafana.FieldType.time, values: [1] },
      { name: 'Value', type: grafana.FieldType.number, values: [1234.5] },
    ]
    return grafana.toDataFrame({ refId, fields: refId === answered ? fields : [] })
  })
  const { fieldConfig } = panel
  const common = { fieldConfig, replaceVariables, theme, timeZone: 'utc' }
  const registry = grafana.standardFieldConfigEditorRegistry
  const data = grafana.applyFieldOverrides({ ...common, data: frames, fieldConfigRegistry: registry })
  const values = grafana.getFieldDisplayValues({ ...common, data, reduceOptions: panel.options.reduceOptions })
  return values.map(({ display }) => grafana.formattedValueToString(display)).join(' | ')
}

const dashboard = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'))
const stats = dashboard.panels.filter(({ type }) => type === 'stat')
const said = stats.map((panel) => {
  const answers = [...panel.targets.map(({ refId }) => refId), 'none']
  return [panel.title, Object.fromEntries(answers.map((refId) => [refId, shown(panel, refId)]))]
})
console.log(JSON.stringify(Object.fromEntries(said)))
