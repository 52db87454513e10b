# kernel<<<grid, block, 0, stream>>>(arguments)  ->  EMULATE((kernel), (grid, block, 0, stream), arguments)
s/([A-Za-z_][A-Za-z_0-9]*(<[A-Za-z0-9_, ]*>)?)<<</EMULATE((\1), (/
s/>>>\(/), /
