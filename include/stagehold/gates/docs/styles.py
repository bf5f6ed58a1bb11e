"""How the pages look: the few classes of Bootstrap and Font Awesome that Great Expectations' templates use."""

from __future__ import annotations

STYLES = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 1200px; padding: 0 24px 48px }
header { border-bottom: 1px solid #8886; margin-bottom: 16px; padding: 16px 0 }
h1 { font-size: 24px; margin: 8px 0 } h4, h5, h6 { font-size: 16px; margin: 8px 0 }
a { color: #2b6cb0 } @media (prefers-color-scheme: dark) { a { color: #90cdf4 } }
p { margin: 4px 0 } ul { margin: 0; padding-left: 20px }
table { border-collapse: collapse; width: 100% }
td, th { border-bottom: 1px solid #8884; padding: 4px 8px; text-align: left; vertical-align: top }
code, .badge, .code-snippet { background: #8882; border-radius: 4px; font-family: monospace; padding: 1px 5px }
pre { overflow: auto; white-space: pre-wrap }
.waiver { border-left: 4px solid #d69e2e; padding-left: 8px }
.alert { background: #8881; border-radius: 6px; margin: 16px 0 8px; padding: 8px 12px }
.text-success { color: #2f855a } .text-danger { color: #c53030 } .text-warning { color: #b7791f }
.fas { font-style: normal; font-weight: bold } .fa-times::before { content: "\\2715" }
.fa-check-circle::before { content: "\\2713" } .fa-exclamation-triangle::before { content: "!" }
.table-responsive { overflow-x: auto } .show-scrollbars { overflow: auto } thead[hidden] { display: none }
.list-group { list-style: none; padding: 0 } .gx .float-right { float: right }
.gx nav, .gx .sticky, .gx .card, .gx .modal, .gx .lead, .gx .d-none, .gx [data-toggle="collapse"] { display: none }
.gx .collapse .card, .gx .collapse .card-body { display: block }
"""
